package config

import "slices"

// later are the keys that the configuration has by contract and that this version can't act on.
// Taking them silently would promise what doesn't happen. A key leaves the list with the change
// that makes it work.
var later = []string{
	"security", "diverts", "ha", "cluster",
	"http.tls",
	"listeners.tls", "listeners.websocket",
	"store.journal-max", "limits.bindings",
	"address-settings.max-size-bytes", "address-settings.address-full-policy",
	"address-settings.redistribution-delay", "address-settings.persist-delivery-count-before-delivery",
}

func isLater(path string) bool { return slices.Contains(later, generic(path)) }
