package main

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/crypto/bcrypt"

	"github.com/letomq/leto/amqp"
)

// users are the names and password hashes of auth.users-file: lines NAME:BCRYPT-HASH, as htpasswd
// writes them; empty lines and lines that start with # are passed over. All methods may be called
// from any goroutine.
type users struct {
	hashes map[string][]byte
	decoy  []byte // checked for unknown names, so that they take as long as known ones
	turn   sync.Mutex
	line   chan struct{} // those who wait for it, and who has it

	seenMu sync.Mutex
	seed   [32]byte
	seen   map[[32]byte]struct{} // fingerprints of what was right before
}

const (
	maxUsers = 100_000
	// maxCost bounds what one login attempt may cost this process: bcrypt takes 50 ms at 10 and
	// doubles with every step.
	maxCost = 14
	// maxWaiting is how many logins wait for their check: a second's worth, and few enough that guesses don't go
	// on being checked when those who guess are gone.
	maxWaiting = 16
	// maxSeen is how many logins that were right are remembered.
	maxSeen = 10_000
)

// readUsers reads a users file. Errors name file and line.
func readUsers(path string) (*users, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("users file: %w", err)
	}
	defer file.Close()
	u := &users{hashes: map[string][]byte{}, line: make(chan struct{}, maxWaiting), seen: map[[32]byte]struct{}{}}
	_, _ = rand.Read(u.seed[:]) // never fails: crypto/rand
	lines := bufio.NewScanner(file)
	cost := bcrypt.MinCost
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, hash, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return nil, fmt.Errorf("users file %s:%d: not NAME:BCRYPT-HASH", path, number)
		}
		c, err := bcrypt.Cost([]byte(hash))
		if err != nil {
			return nil, fmt.Errorf("users file %s:%d: user %s has no bcrypt hash; write it with: htpasswd -nB %s", path, number, name, name)
		}
		if c > maxCost {
			return nil, fmt.Errorf("users file %s:%d: user %s has cost %d; the most is %d", path, number, name, c, maxCost)
		}
		if u.hashes[name] != nil {
			return nil, fmt.Errorf("users file %s:%d: user %s stands twice", path, number, name)
		}
		if len(u.hashes) == maxUsers {
			return nil, fmt.Errorf("users file %s:%d: more than %d users", path, number, maxUsers)
		}
		cost = max(cost, c)
		u.hashes[name] = []byte(hash)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("users file %s: %w", path, err)
	}
	if len(u.hashes) == 0 {
		return nil, fmt.Errorf("users file %s: holds no user", path)
	}
	u.decoy, err = bcrypt.GenerateFromPassword([]byte(rand.Text()), cost)
	if err != nil {
		return nil, fmt.Errorf("users file %s: %w", path, err)
	}
	return u, nil
}

// verify says whether the password is the user's. One check runs at a time: guessing gets one processor, and
// connections that are open keep the others. Where too many wait, nothing is checked. What was right before is known
// at once, so that guesses don't keep clients out that come back.
func (u *users) verify(name, password string) amqp.Verdict {
	mark := u.fingerprint(name, password)
	u.seenMu.Lock()
	_, seen := u.seen[mark]
	u.seenMu.Unlock()
	if seen {
		return amqp.Known
	}
	select {
	case u.line <- struct{}{}:
		defer func() { <-u.line }()
	default:
		return amqp.TryLater
	}
	if !u.check(name, password) {
		return amqp.Refused
	}
	u.seenMu.Lock()
	defer u.seenMu.Unlock()
	if len(u.seen) >= maxSeen {
		clear(u.seen)
	}
	u.seen[mark] = struct{}{}
	return amqp.Known
}

// fingerprint is what is remembered of a login: nothing that says what the password is to whoever doesn't know the seed.
func (u *users) fingerprint(name, password string) (mark [32]byte) {
	h := hmac.New(sha256.New, u.seed[:])
	h.Write([]byte(name)) // a hash takes everything
	h.Write([]byte{0})    // is in neither: SASL PLAIN separates them so
	h.Write([]byte(password))
	h.Sum(mark[:0])
	return mark
}

func (u *users) check(name, password string) bool {
	hash, known := u.hashes[name]
	if !known {
		hash = u.decoy
	}
	if len(password) > 72 { // bcrypt's limit; longer ones can't have been hashed
		return false
	}
	u.turn.Lock()
	defer u.turn.Unlock()
	return bcrypt.CompareHashAndPassword(hash, []byte(password)) == nil && known
}
