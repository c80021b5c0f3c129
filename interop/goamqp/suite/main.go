// The program with which go-amqp takes part in interop/exchange: see interop/foreign.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/Azure/go-amqp"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: write ADDRESS, or read ADDRESS N")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	conn, err := amqp.Dial(ctx, os.Getenv("LETO_AMQP_URL"), nil)
	if err != nil {
		return err
	}
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		return err
	}
	switch args[0] {
	case "write":
		err = write(ctx, session, args[1])
	case "read":
		var count int
		if count, err = strconv.Atoi(args[len(args)-1]); err == nil {
			err = read(ctx, session, args[1], count)
		}
	default:
		err = fmt.Errorf("what is %s?", args[0])
	}
	return errors.Join(err, conn.Close())
}

func say(line map[string]string) {
	_ = json.NewEncoder(os.Stdout).Encode(line)
}

func write(ctx context.Context, session *amqp.Session, address string) error {
	text, err := os.ReadFile(os.Getenv("LETO_SPECIMENS"))
	if err != nil {
		return err
	}
	var specimens []struct{ Name, Encoded string }
	if err := json.Unmarshal(text, &specimens); err != nil {
		return err
	}
	sender, err := session.NewSender(ctx, address, nil)
	if err != nil {
		return err
	}
	for _, specimen := range specimens {
		encoded, err := hex.DecodeString(specimen.Encoded)
		if err != nil {
			return err
		}
		var m amqp.Message
		if err := m.UnmarshalBinary(encoded); err != nil {
			say(map[string]string{"message": specimen.Name, "skip": err.Error()})
			continue
		}
		if encoded, err = m.MarshalBinary(); err == nil && len(encoded) == 0 {
			err = errors.New("encodes to nothing")
		}
		if err != nil {
			say(map[string]string{"message": specimen.Name, "skip": err.Error()})
			continue
		}
		if err := sender.Send(ctx, &m, nil); err != nil {
			return fmt.Errorf("%s: %w", specimen.Name, err)
		}
		say(map[string]string{"message": specimen.Name})
	}
	return nil
}

func read(ctx context.Context, session *amqp.Session, address string, count int) error {
	receiver, err := session.NewReceiver(ctx, address, nil)
	if err != nil {
		return err
	}
	for range count {
		m, err := receiver.Receive(ctx, nil)
		if err != nil {
			return err
		}
		again, err := m.MarshalBinary()
		if err != nil {
			return err
		}
		say(map[string]string{"again": hex.EncodeToString(again)})
		if err := receiver.AcceptMessage(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
