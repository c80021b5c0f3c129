package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// version is set by the release build (-ldflags "-X main.version=v1.2.3").
var version string

// buildVersion is the release's version, else the module's, else "devel" with the commit.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	if revision := buildRevision(info); revision != "" {
		return "devel-" + revision[:min(12, len(revision))]
	}
	return "devel"
}

func buildRevision(info *debug.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if c.Bool("json") {
				return json.NewEncoder(c.App.Writer).Encode(map[string]string{
					"version": buildVersion(), "go": runtime.Version(), "platform": platform,
				})
			}
			_, err := fmt.Fprintf(c.App.Writer, "leto %s (%s, %s)\n", buildVersion(), runtime.Version(), platform)
			return err
		},
	}
}
