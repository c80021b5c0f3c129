package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/letomq/leto/admin"
	"github.com/letomq/leto/store"
)

// maxAnswer bounds what is read of an answer: enough for a million queues.
const maxAnswer = 512 << 20

// adminGet reads JSON from the broker's HTTP API.
func adminGet(ctx context.Context, base, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return adminAsk(ctx, base, path, func(what string, answer *http.Response) error {
		return decodeAnswer(what, answer, into)
	})
}

// decodeAnswer reads an answer in JSON. Numbers of which the type isn't known stay as they are written: a long has more
// digits than a float64.
func decodeAnswer(what string, answer *http.Response, into any) error {
	decoder := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return exitWith(exitFailed, "answer of %s: %w", what, err)
	}
	return nil
}

// adminExport writes the export of the broker's store, which may be long and take long.
func adminExport(ctx context.Context, base string, to io.Writer) error {
	return adminAsk(ctx, base, "/api/v1/store/export", func(what string, answer *http.Response) error {
		if _, err := io.Copy(to, answer.Body); err != nil {
			return exitWith(exitFailed, "answer of %s: %w", what, err)
		}
		if n, err := strconv.Atoi(answer.Trailer.Get(admin.LeftOutTrailer)); err == nil && n > 0 {
			return store.LeftOut(n)
		}
		return nil
	})
}

// adminAsk has read take an answer that is one.
func adminAsk(ctx context.Context, base, path string, read func(what string, answer *http.Response) error) error {
	return adminDo(ctx, base, http.MethodGet, path, nil, nil, read)
}

// adminChange asks the broker to change something, and reads what it says then into a value that isn't nil. It returns
// the status.
func adminChange(ctx context.Context, base, method, path string, body, into any) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = adminDo(ctx, base, method, path, body, nil, func(what string, answer *http.Response) error {
		status = answer.StatusCode
		if into == nil || status == http.StatusNoContent {
			return nil
		}
		return decodeAnswer(what, answer, into)
	})
	return status, err
}

// adminPerform has the broker carry out a command over messages, for as long as that takes, and tells how far it is.
// What was done until an error is returned beside it.
func adminPerform(ctx context.Context, base, path string, body any, tell func(admin.Progress)) (last admin.Progress, err error) {
	header := http.Header{"Accept": {admin.ProgressType}}
	err = adminDo(ctx, base, http.MethodPost, path, body, header, func(what string, answer *http.Response) error {
		for decoder := json.NewDecoder(answer.Body); !last.Ended; {
			if err := decoder.Decode(&last); err != nil {
				return exitWith(exitFailed, "answer of %s: %w", what, err)
			}
			tell(last)
		}
		if last.Error != "" {
			return exitWith(statusCode(last.Status), "%s: %s", what, oneLine(last.Error))
		}
		return nil
	})
	return last, err
}

// adminDo sends a request with a JSON body, unless that is nil, and has read take an answer that isn't an error. path is
// escaped.
func adminDo(ctx context.Context, base, method, path string, body any, header http.Header,
	read func(what string, answer *http.Response) error,
) error {
	target, err := url.Parse(base)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return usageError("--admin-url: %q is not http://HOST:PORT", base)
	}
	path, query, _ := strings.Cut(path, "?")
	target = target.JoinPath(path)
	target.RawQuery = query
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		return usageError("--admin-url: %v", err)
	}
	maps.Copy(request.Header, header)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return dialError(target.Redacted(), err)
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return statusError(target.Redacted(), answer.StatusCode, answer.Body)
	}
	return read(target.Redacted(), answer)
}

// statusError turns an HTTP status and its problem details into an exit code and a line.
func statusError(what string, status int, body io.Reader) error {
	code := statusCode(status)
	var told struct{ Detail string }
	detail := http.StatusText(status)
	if json.NewDecoder(io.LimitReader(body, 64<<10)).Decode(&told) == nil && told.Detail != "" {
		detail = told.Detail
	}
	return exitWith(code, "%s: %d %s", what, status, strings.TrimSpace(oneLine(detail)))
}

// statusCode returns the exit code that an HTTP status stands for.
func statusCode(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusUnsupportedMediaType:
		return exitUsage
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitForbidden
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return exitConflict
	}
	return exitFailed
}
