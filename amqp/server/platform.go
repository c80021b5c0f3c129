package server

import "runtime"

// platform is what open's properties say the broker runs on.
var platform = "Go " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
