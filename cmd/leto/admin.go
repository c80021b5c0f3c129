package main

import (
	"context"
	"encoding/json"
	"io"
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
		if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(into); err != nil {
			return exitWith(exitFailed, "answer of %s: %w", what, err)
		}
		return nil
	})
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
	target, err := url.Parse(base)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return usageError("--admin-url: %q is not http://HOST:PORT", base)
	}
	target = target.JoinPath(path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return usageError("--admin-url: %v", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return dialError(target.Redacted(), err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return statusError(target.Redacted(), answer.StatusCode, answer.Body)
	}
	return read(target.Redacted(), answer)
}

// statusError turns an HTTP status and its problem details into an exit code and a line.
func statusError(what string, status int, body io.Reader) error {
	code := exitFailed
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		code = exitForbidden
	case http.StatusNotFound:
		code = exitNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		code = exitConflict
	}
	var told struct{ Detail string }
	detail := http.StatusText(status)
	if json.NewDecoder(io.LimitReader(body, 64<<10)).Decode(&told) == nil && told.Detail != "" {
		detail = told.Detail
	}
	return exitWith(code, "%s: %d %s", what, status, strings.TrimSpace(oneLine(detail)))
}
