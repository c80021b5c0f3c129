package admin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/letomq/leto/store"
)

// exportedStore is a store whose export the test writes.
type exportedStore struct {
	fakeStore
	export func(w io.Writer) error
}

func (s exportedStore) Export(w io.Writer) error { return s.export(w) }

func exporting(t *testing.T, patience time.Duration, export func(w io.Writer) error) (address string) {
	o := options()
	o.Store, o.RequestTimeout = exportedStore{export: export}, patience
	return start(t, o)
}

const exportPath = "/api/v1/store/export"

func TestStoreExport(t *testing.T) {
	want := bytes.Repeat([]byte("leto"), 1<<20)
	at := exporting(t, time.Second, func(w io.Writer) error {
		for rest := want; len(rest) > 0; rest = rest[1<<19:] {
			time.Sleep(150 * time.Millisecond) // altogether longer than one piece may take
			if _, err := w.Write(rest[:1<<19]); err != nil {
				return err
			}
		}
		return nil
	})
	if answer, body := do(t, "GET", "http://"+at+exportPath, nil); answer.StatusCode != 200 || body != string(want) {
		t.Errorf("status %d, %d bytes, want %d", answer.StatusCode, len(body), len(want))
	}
}

// TestIncompleteStoreExport: what is left out stands behind it.
func TestIncompleteStoreExport(t *testing.T) {
	for _, left := range []int{0, 3} {
		at := exporting(t, time.Second, func(w io.Writer) error {
			if _, err := w.Write([]byte("some")); err != nil || left == 0 {
				return err
			}
			return store.LeftOut(left)
		})
		answer, body := do(t, "GET", "http://"+at+exportPath, nil)
		if body != "some" || answer.Trailer.Get(LeftOutTrailer) != strconv.Itoa(left) {
			t.Errorf("%q, trailer %v, want %d", body, answer.Trailer, left)
		}
	}
}

func TestStoreExportFails(t *testing.T) {
	at := exporting(t, time.Second, func(io.Writer) error { return errors.New("device") })
	if answer, _ := do(t, "GET", "http://"+at+exportPath, nil); answer.StatusCode != 503 {
		t.Errorf("status %d, want 503: nothing was written", answer.StatusCode)
	}
	at = exporting(t, time.Second, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<16))
		return errors.Join(err, errors.New("device"))
	})
	answer, err := client.Get("http://" + at + exportPath)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.ReadAll(answer.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read = %v: half an export must not look like a whole one", err)
	}
	if answer, _ := do(t, "GET", "http://"+start(t, options())+exportPath, nil); answer.StatusCode != 404 {
		t.Errorf("status %d without a store, want 404", answer.StatusCode)
	}
}

func TestOneStoreExportAtATime(t *testing.T) {
	running, end := make(chan struct{}), make(chan struct{})
	at := exporting(t, 10*time.Second, func(io.Writer) error {
		running <- struct{}{}
		<-end
		return nil
	})
	first := make(chan int, 1)
	go func() {
		answer, err := client.Get("http://" + at + exportPath)
		if err != nil {
			first <- 0
			return
		}
		answer.Body.Close()
		first <- answer.StatusCode
	}()
	<-running
	if answer, _ := do(t, "GET", "http://"+at+exportPath, nil); answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, want 503 and when to try again", answer.StatusCode)
	}
	close(end)
	if status := <-first; status != 200 {
		t.Errorf("the first one got %d", status)
	}
}

// endless exports until it fails, and says why.
func endless(t *testing.T, patience time.Duration) (address string, ended chan error) {
	ended = make(chan error, 1)
	return exporting(t, patience, func(w io.Writer) error {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				ended <- err
				return err
			}
		}
	}), ended
}

// ask requests an export and reads nothing.
func ask(t *testing.T, at string) net.Conn {
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, "GET "+exportPath+" HTTP/1.1\r\nHost: leto\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestStuckStoreExport: a peer that reads nothing, or hardly anything, doesn't hold the store for ever.
func TestStuckStoreExport(t *testing.T) {
	for name, read := range map[string]func(c net.Conn){
		"nothing": func(net.Conn) {},
		"little": func(c net.Conn) {
			for b := make([]byte, 1000); ; time.Sleep(10 * time.Millisecond) {
				if _, err := c.Read(b); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			at, ended := endless(t, 300*time.Millisecond)
			c := ask(t, at)
			done := make(chan struct{})
			go func() { defer close(done); read(c) }()
			select {
			case err := <-ended:
				if e := net.Error(nil); !errors.As(err, &e) || !e.Timeout() {
					t.Errorf("write = %v, want a time-out", err)
				}
			case <-time.After(20 * time.Second):
				t.Error("it waits on")
			}
			c.Close()
			<-done
		})
	}
}

// TestStoreExportAtTheEnd: a stop doesn't wait for a peer that doesn't read.
func TestStoreExportAtTheEnd(t *testing.T) {
	ended := make(chan error, 1)
	began := make(chan struct{}, 1)
	o := options()
	o.Store = exportedStore{export: func(w io.Writer) error {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				ended <- err
				return err
			}
			select {
			case began <- struct{}{}:
			default:
			}
		}
	}}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	ask(t, l.Addr().String())
	<-began
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	<-ended
	<-served
}
