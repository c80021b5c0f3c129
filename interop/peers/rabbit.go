package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// rabbit is Debian's RabbitMQ, whose AMQP 1.0 is a plugin that translates to 0-9-1.
func rabbit() *peer {
	return &peer{
		name:     "RabbitMQ",
		accepted: "written by a classic queue, flushed some time later",
		version:  rabbitVersion,
		lay:      layRabbit,
		command:  rabbitCommand,
		queue:    func(n int) string { return "/amq/queue/" + plain(n) },
		topic:    "/exchange/amq.fanout",
	}
}

func rabbitQuorum() *peer {
	p := rabbit()
	p.setting, p.accepted = "quorum queue", "in the flushed log of a quorum queue with one member"
	p.queue = func(n int) string { return "/amq/queue/quorum." + plain(n) }
	return p
}

// rabbitHome returns the root that Debian's packages were unpacked to.
func rabbitHome(home string) string { return filepath.Join(home, "rabbitmq", "root") }

func rabbitVersion(home string) (string, error) {
	found, _ := filepath.Glob(filepath.Join(rabbitHome(home), "usr/lib/rabbitmq/lib/rabbitmq_server-*"))
	if len(found) != 1 {
		return "", errAbsent
	}
	return filepath.Base(found[0])[len("rabbitmq_server-"):] + " (Debian's, AMQP 1.0 by its plugin)", nil
}

func layRabbit(_, dir string, port int) error {
	type object = map[string]any
	var declared []object
	for n := range queues {
		declared = append(declared,
			object{"vhost": "/", "name": plain(n), "durable": true, "auto_delete": false, "arguments": object{}},
			object{"vhost": "/", "name": "quorum." + plain(n), "durable": true, "auto_delete": false,
				"arguments": object{"x-queue-type": "quorum"}})
	}
	definitions, err := json.MarshalIndent(object{
		"users":       []object{{"name": "guest", "password": "guest", "tags": "administrator"}},
		"vhosts":      []object{{"name": "/"}},
		"permissions": []object{{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}},
		"queues":      declared,
	}, "", "  ")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"definitions.json": string(definitions),
		"plugins":          "[rabbitmq_amqp1_0].\n",
		"rabbitmq.conf": fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d\nload_definitions = %s/definitions.json\n"+
			"amqp1_0.default_user = guest\namqp1_0.default_vhost = /\n", port, dir),
	} {
		if err := write(dir, name, text); err != nil {
			return err
		}
	}
	return nil
}

// rabbitCommand runs the server without a service, and epmd beside it on a port
// of its own. Erlang's own start script believes that it lies in /usr.
func rabbitCommand(home, dir string, port int) *exec.Cmd {
	root := rabbitHome(home)
	bin, _ := filepath.Glob(filepath.Join(root, "usr/lib/erlang/erts-*/bin"))
	server, _ := filepath.Glob(filepath.Join(root, "usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin"))
	if len(bin) != 1 || len(server) != 1 {
		return exec.Command(filepath.Join(root, "rabbitmq-server")) // which fails with a word that says why
	}
	script := fmt.Sprintf(`mkdir -p %[1]s/bin
printf '#!/bin/sh\nexec %[2]s/erlexec "$@"\n' >%[1]s/bin/erl && chmod +x %[1]s/bin/erl
%[2]s/epmd -port $ERL_EPMD_PORT -address 127.0.0.1 </dev/null >/dev/null 2>&1 &
exec %[3]s/rabbitmq-server
`, dir, bin[0], server[0])
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(),
		"ROOTDIR="+filepath.Join(root, "usr/lib/erlang"), "BINDIR="+bin[0], "EMU=beam", "PROGNAME=erl",
		"PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "HOME="+dir,
		fmt.Sprintf("ERL_EPMD_PORT=%d", port+1), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=bench@localhost", fmt.Sprintf("RABBITMQ_DIST_PORT=%d", port+2),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"RABBITMQ_CONF_ENV_FILE="+filepath.Join(dir, "none"),
		"RABBITMQ_CONFIG_FILE="+filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(dir, "plugins"),
		"RABBITMQ_FEATURE_FLAGS_FILE="+filepath.Join(dir, "feature_flags"),
		"RABBITMQ_GENERATED_CONFIG_DIR="+filepath.Join(dir, "generated"),
		"RABBITMQ_MNESIA_BASE="+filepath.Join(dir, "mnesia"),
		"RABBITMQ_LOG_BASE="+filepath.Join(dir, "log"),
		"RABBITMQ_PID_FILE="+filepath.Join(dir, "pid"))
	return cmd
}
