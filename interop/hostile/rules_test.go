package hostile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// withUsers writes a users file, and returns the setting that names it.
func withUsers(t *testing.T) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), 10)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte("ann:"+string(hash)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "auth.users-file=" + path
}

func plain(response string) []byte {
	return wire.NewFrame(1, 0, wire.Described(wire.CodeInit, wire.List(wire.Symbol("PLAIN"), wire.Binary([]byte(response)))), nil)
}

// TestWaysAroundTheLogin: orders of frames that must not let anybody in, and SASL that makes no sense.
func TestWaysAroundTheLogin(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a broker")
	}
	b := start(t, withUsers(t))
	open := bytes.Join([][]byte{wire.Open("x", 1<<16), wire.Begin()}, nil)
	wrong := plain("\x00ann\x00wrong")
	sasl := wire.HeaderSASL
	for name, said := range map[string][][]byte{
		"no SASL":                       {wire.HeaderAMQP, open},
		"open instead of init":          {sasl, open},
		"header instead of init":        {sasl, wire.HeaderAMQP, open},
		"on after a failure":            {sasl, wrong, wire.HeaderAMQP, open},
		"a second init":                 {sasl, wrong, plain("\x00ann\x00secret"), wire.HeaderAMQP, open},
		"a mechanism that isn't known":  {sasl, wire.NewFrame(1, 0, wire.Described(wire.CodeInit, wire.List(wire.Symbol(strings.Repeat("X", 8000)))), nil), wire.HeaderAMQP, open},
		"ANONYMOUS":                     {sasl, wire.Init(), wire.HeaderAMQP, open},
		"an outcome from the client":    {sasl, wire.NewFrame(1, 0, wire.Described(wire.CodeOutcome, wire.List(wire.Ubyte(0))), nil), wire.HeaderAMQP, open},
		"a response before init":        {sasl, wire.NewFrame(1, 0, wire.Described(0x43, wire.List(wire.Binary([]byte("\x00ann\x00secret")))), nil), wire.HeaderAMQP, open},
		"init as an AMQP frame":         {sasl, wire.NewFrame(0, 0, wire.Described(wire.CodeInit, wire.List(wire.Symbol("PLAIN"), wire.Binary([]byte("\x00ann\x00secret")))), nil), wire.HeaderAMQP, open},
		"PLAIN without a response":      {sasl, wire.NewFrame(1, 0, wire.Described(wire.CodeInit, wire.List(wire.Symbol("PLAIN"))), nil), wire.HeaderAMQP, open},
		"PLAIN without separators":      {sasl, plain("annsecret"), wire.HeaderAMQP, open},
		"PLAIN of separators":           {sasl, plain(strings.Repeat("\x00", 15_000)), wire.HeaderAMQP, open},
		"PLAIN for somebody else":       {sasl, plain("root\x00ann\x00secret"), wire.HeaderAMQP, open},
		"PLAIN with one separator more": {sasl, plain("\x00ann\x00secret\x00"), wire.HeaderAMQP, open},
		"PLAIN that isn't text":         {sasl, plain("\x00\xff\xfe\x00secret"), wire.HeaderAMQP, open},
		"an empty frame":                {sasl, {0, 0, 0, 8, 2, 1, 0, 0}, wire.HeaderAMQP, open},
		"an empty list":                 {sasl, wire.NewFrame(1, 0, wire.Described(wire.CodeInit, wire.List()), nil), wire.HeaderAMQP, open},
	} {
		c, err := wire.Dial(b.AMQP)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Send(bytes.Join(said, nil))
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		var heard bytes.Buffer
		_, _ = heard.ReadFrom(c)
		// The bytes of begin's descriptor on an AMQP frame: whoever hears them is in.
		if bytes.Contains(heard.Bytes(), []byte{0x00, 0x53, wire.CodeBegin}) {
			t.Errorf("%s: let in: % x", name, heard.Bytes())
		}
		c.Close()
	}
	c, err := wire.Dial(b.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(sasl, plain("\x00ann\x00secret"), wire.HeaderAMQP, open); err != nil {
		t.Fatal(err)
	}
	if err := c.Header(sasl); err != nil {
		t.Fatal(err)
	}
	if f, err := c.Await(wire.CodeOutcome); err != nil || f.Number(0) != 0 {
		t.Fatalf("the right password: code %d, %v", f.Number(0), err)
	}
}

// TestGuessing: many guess at once. Who has been right before gets in meanwhile, and nothing goes on when they are gone.
func TestGuessing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a broker")
	}
	b := start(t, withUsers(t), "auth.anonymous=true")
	login := func(user, password string) (code uint64, took time.Duration, err error) {
		begin := time.Now()
		c, err := wire.Dial(b.AMQP)
		if err != nil {
			return 0, 0, err
		}
		defer c.Close()
		if err := c.Send(wire.HeaderSASL, plain("\x00"+user+"\x00"+password)); err != nil {
			return 0, 0, err
		}
		if err := c.Header(wire.HeaderSASL); err != nil {
			return 0, 0, err
		}
		f, err := c.Await(wire.CodeOutcome)
		return f.Number(0), time.Since(begin), err
	}
	if code, _, err := login("ann", "secret"); err != nil || code != 0 {
		t.Fatalf("code %d, %v", code, err)
	}
	base, err := b.Gauges()
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	a := newAttacker(t, b, false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.each(40, func(k int) {
			for i := 0; !over(stop); i++ {
				_, _, _ = login(fmt.Sprint("user", k), fmt.Sprint("guess", i))
			}
		})
	}()
	time.Sleep(300 * time.Millisecond)
	for range 5 {
		code, took, err := login("ann", "secret")
		if err != nil || code != 0 {
			t.Errorf("known client beside guesses: code %d, %v", code, err)
		}
		if took > 5*time.Second {
			t.Errorf("known client beside guesses: %v", took)
		}
	}
	close(stop)
	<-done
	b.Settled(t, base, 48*mib, 10*time.Second)
	if n, err := b.Metric("leto_logins_failed_total"); err != nil || n == 0 {
		t.Errorf("%v logins failed, %v", n, err)
	}
	zero(t, b, "leto_connections")
}

// TestNames: addresses and link names that would hurt where names are files, lines or terminals.
func TestNames(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := connect(t, b)
	refused := []string{"a\r\nb", "a\x00b", "a\x1b[2Jb", "a\u009b2Jb", "a\x7f", strings.Repeat("n", 1025), "\xff\xfe", "q::\n", "::", "a::", "::b", "$leto", "temporary." + strings.Repeat("0", 32)}
	for i, name := range refused {
		if err := c.Send(wire.AttachSender(uint32(i), fmt.Sprint("l", i), name)); err != nil {
			t.Fatal(err)
		}
		f, err := c.Await(wire.CodeDetach, wire.CodeClose)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if f.Code == wire.CodeClose { // not UTF-8: no string at all
			if name != "\xff\xfe" {
				t.Fatalf("%q: closed with %s", name, f.Condition(0))
			}
			c = connect(t, b)
		}
	}
	c = connect(t, b)
	for i, name := range []string{"../../../etc/passwd", "..", "/", "a/../b", "C:\\x", "%2e%2e", "a b", "'; drop table", "<script>", "NUL", "名前", strings.Repeat("n", 1024)} {
		s, err := wire.NewSender(c, uint32(i), fmt.Sprint("l", i), name)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if err := s.Send(body(1, 10)); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	if err := c.Hangup(); err != nil {
		t.Fatal(err)
	}
	if err := b.Again(); err != nil { // what is stored under such names comes back
		t.Fatal(err)
	}
	for _, name := range []string{"../../../etc/passwd", "<script>", strings.Repeat("n", 1024)} {
		if n := empty(t, b, name); n != 1 {
			t.Errorf("%q: %d messages", name, n)
		}
	}
}

// TestStrangersNodes: a dynamic node is consumed by the connection that made it and by nobody else.
func TestStrangersNodes(t *testing.T) {
	t.Parallel()
	b := start(t)
	owner, thief := connect(t, b), connect(t, b)
	if err := owner.Send(dynamic(0, 0, "mine")); err != nil {
		t.Fatal(err)
	}
	f, err := owner.Await(wire.CodeAttach)
	if err != nil {
		t.Fatal(err)
	}
	_, source, err := wire.Code(f.Field(5))
	if err != nil {
		t.Fatal(err)
	}
	items, err := wire.Items(source)
	if err != nil {
		t.Fatal(err)
	}
	address, _ := wire.Text(items[0])
	for _, name := range []string{address, address + "::" + address, "queue://" + address} {
		send(t, thief, receiver(0, 0, "thief", name, 0))
		f, err := thief.Await(wire.CodeDetach)
		if err != nil || !strings.HasPrefix(f.Condition(2), "amqp:not-allowed") {
			t.Errorf("%s: %s, %v", name, f.Condition(2), err)
		}
		send(t, thief, detach(0, 0))
	}
}

// TestLogFlood: peers that break the rules as often as they can leave few lines in the log, and none of their making.
func TestLogFlood(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a broker")
	}
	b := harness.Start(t, "--log-level", "info")
	forged := "x\n2026-01-01T00:00:00Z ERR forged \x1b[31m"
	begin := time.Now()
	a := newAttacker(t, b, false)
	a.each(4, func(int) {
		for range 1500 {
			c := a.open(begin2(), sender(0, 0, forged+strings.Repeat("y", 1500), "log"), settled(0, 0, 1), wire.Detach(77))
			if c == nil {
				return
			}
			a.drop(c)
		}
	})
	zero(t, b, "leto_connections")
	lines := strings.Count(b.Log(), "\n")
	if most := 200 * (3 + int(time.Since(begin).Seconds())); lines > most {
		t.Errorf("%d lines in %v, at most %d allowed", lines, time.Since(begin), most)
	}
	for line := range strings.Lines(b.Log()) {
		if strings.HasPrefix(line, "2026-01-01") || strings.Contains(line, "\x1b[31m") || len(line) > 1500 {
			t.Errorf("a line of the peer's making: %.300q", line)
			break
		}
	}
	if err := b.Stop(); err != nil { // it says at the end at the latest what it has held back
		t.Fatal(err)
	}
	if !strings.Contains(b.Log(), "more=") {
		t.Error("nothing says that lines are held back")
	}
}

func begin2() []byte { return begin(0, 10) }
