package peers

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// machine is where a round was measured.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	Kernel string `json:"kernel"`
	Disk   string `json:"disk"` // file system of the folder that brokers write to
	Java   string `json:"java"`
}

func thisMachine() machine {
	m := machine{Cores: runtime.NumCPU(), CPU: "unknown"}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.CPU = field(text, "model name")
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int64
		if _, err := fmt.Sscan(field(text, "MemTotal"), &kib); err == nil {
			m.Memory = fmt.Sprintf("%.0f GiB", float64(kib)/(1<<20))
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = "Linux " + strings.TrimSpace(string(text))
	}
	if out, err := exec.Command("stat", "-f", "-c", "%T", os.TempDir()).Output(); err == nil {
		m.Disk = strings.TrimSpace(string(out))
	}
	if out, err := exec.Command("java", "-version").CombinedOutput(); err == nil {
		line, _, _ := strings.Cut(string(out), "\n")
		m.Java = strings.ReplaceAll(line, `"`, "")
	}
	return m
}

// field is the value of a line `name : value`.
func field(text []byte, name string) string {
	for line := range bytes.Lines(text) {
		if key, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
