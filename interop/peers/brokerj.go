package peers

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
)

func brokerJ() *peer {
	return &peer{
		name:     "Qpid Broker-J",
		accepted: "committed by Derby, which flushes its log",
		version: func(home string) (string, error) {
			return jar(filepath.Join(home, "brokerj", "lib"), "qpid-broker-core")
		},
		lay: layBrokerJ,
		command: func(home, dir string, port int) *exec.Cmd {
			// The memory is what its own start script gives.
			return exec.Command("java", "-Xmx512m", "-XX:MaxDirectMemorySize=1536m",
				"-cp", filepath.Join(home, "brokerj", "lib", "*"), "org.apache.qpid.server.Main",
				"-icp", filepath.Join(dir, "config.json"),
				"-prop", "qpid.work_dir="+filepath.Join(dir, "work"), "-prop", fmt.Sprintf("qpid.amqp_port=%d", port))
		},
		queue: plain,
		topic: "amq.fanout",
	}
}

func layBrokerJ(_, dir string, _ int) error {
	type object = map[string]any
	var declared []object
	for n := range queues {
		declared = append(declared, object{"name": plain(n)})
	}
	host, err := json.Marshal(object{"type": "DERBY", "queues": declared})
	if err != nil {
		return err
	}
	config, err := json.MarshalIndent(object{
		"name": "bench", "modelVersion": "8.0",
		"authenticationproviders": []object{{"name": "anonymous", "type": "Anonymous"}},
		"ports": []object{{
			"name": "AMQP", "type": "AMQP", "bindingAddress": "127.0.0.1", "port": "${qpid.amqp_port}",
			"authenticationProvider": "anonymous",
			"virtualhostaliases": []object{
				{"name": "nameAlias", "type": "nameAlias"},
				{"name": "defaultAlias", "type": "defaultAlias"},
				{"name": "hostnameAlias", "type": "hostnameAlias"},
			},
		}},
		"virtualhostnodes": []object{{
			"name": "default", "type": "JSON", "defaultVirtualHostNode": "true",
			"virtualHostInitialConfiguration": string(host),
		}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return write(dir, "config.json", string(config))
}
