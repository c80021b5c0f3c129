package admin

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// sameOrigin keeps web pages that the user of a browser happens to look at from using the API with it. A page of
// another origin can send a form, so that whatever changes something has to be JSON, which a form can't be and a script
// may not send unasked. A page whose name has been made to lead to this broker (DNS rebinding) is of this origin as far
// as the browser knows: where nobody has to name a user, the request's host must be an address, localhost or one of
// names.
func sameOrigin(names []string, anonymous bool, next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if anonymous && !ownHost(r.Host, names) {
			problem(w, http.StatusMisdirectedRequest, "host "+r.Host+" is none of this broker's: use its address, or name the host in http.hosts")
			return
		}
		if err := origins.Check(r); err != nil {
			problem(w, http.StatusForbidden, "a request from another site's page: "+err.Error())
			return
		}
		if r.Method == http.MethodPost || r.Method == http.MethodPut {
			kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
			if err != nil || kind != "application/json" {
				problem(w, http.StatusUnsupportedMediaType, "the request needs Content-Type: application/json")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// ownHost reports whether a Host header names this broker: by address, which no name service can bend, or by a name
// that is known.
func ownHost(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return slices.ContainsFunc(names, func(own string) bool { return strings.EqualFold(own, host) })
}
