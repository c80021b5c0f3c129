package main

import (
	"github.com/letomq/leto/amqp"

	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

func hash(t *testing.T, password string) string {
	t.Helper()
	h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func usersFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsers(t *testing.T) {
	// htpasswd writes $2y$, which differs from $2a$ in name only.
	u, err := readUsers(usersFile(t, "# operators\n\nann:"+strings.Replace(hash(t, "secret"), "$2a$", "$2y$", 1)+"\nbob:"+hash(t, "other")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, password string
		want           bool
	}{
		{"ann", "secret", true}, {"bob", "other", true},
		{"ann", "other", false}, {"ann", "", false}, {"eve", "secret", false}, {"", "", false},
		{"ann", strings.Repeat("x", 73), false},
	} {
		for range 2 { // what was right is remembered
			if got := u.verify(c.name, c.password); (got == amqp.Known) != c.want {
				t.Errorf("%q with %q: %v", c.name, c.password, got)
			}
		}
	}
	if len(u.seen) != 2 {
		t.Errorf("%d logins remembered", len(u.seen))
	}
	// With as many waiting as may, those who were right before get in, and others are told to come again.
	for range maxWaiting {
		u.line <- struct{}{}
	}
	if got := u.verify("ann", "secret"); got != amqp.Known {
		t.Errorf("right before: %v", got)
	}
	if got := u.verify("ann", "other"); got != amqp.TryLater {
		t.Errorf("one too many: %v", got)
	}
}

func TestUsersFileRefused(t *testing.T) {
	good := hash(t, "x")
	costly := strings.Replace(good, "$2a$04$", "$2a$20$", 1)
	for text, want := range map[string]string{
		"ann\n":                                ":1: not NAME:BCRYPT-HASH",
		":" + good + "\n":                      ":1: not NAME:BCRYPT-HASH",
		"# c\nann:secret\n":                    ":2: user ann has no bcrypt hash",
		"ann:" + costly + "\n":                 ":1: user ann has cost 20",
		"ann:" + good + "\nann:" + good + "\n": ":2: user ann stands twice",
		"# nobody\n":                           "holds no user",
	} {
		if _, err := readUsers(usersFile(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := readUsers("/nonexistent/users"); err == nil {
		t.Error("a missing file was read")
	}
}
