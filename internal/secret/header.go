package secret

import (
	"net/url"
	"strings"
)

const exporter = "OTEL_EXPORTER_" // begins the names of variables that say how OpenTelemetry reaches its collector

// OpensCollector says whether a variable holds what opens a collector of OpenTelemetry's: headers, or an address with a password or a key
// in it.
func OpensCollector(name, value string) bool {
	return holdsHeaders(name) || holdsAddress(name) && strings.ContainsAny(value, "@?") || strings.HasPrefix(name, exporter) && strings.HasSuffix(name, "_PASSWORD")
}

// holdsHeaders says whether a variable of this name holds such headers: key=value,key=value.
func holdsHeaders(name string) bool {
	return strings.HasPrefix(name, exporter) && strings.HasSuffix(name, "_HEADERS")
}

// holdsAddress says whether a variable of this name holds the address of a collector.
func holdsAddress(name string) bool {
	return strings.HasPrefix(name, exporter) && strings.HasSuffix(name, "_ENDPOINT")
}

// headerValues are the values in such a variable, as they stand there and as they are sent.
func headerValues(list string) (values []string) {
	for pair := range strings.SplitSeq(list, ",") {
		_, value, _ := strings.Cut(pair, "=")
		value = strings.TrimSpace(value)
		values = append(values, value)
		if sent, err := url.PathUnescape(value); err == nil && sent != value {
			values = append(values, sent)
		}
	}
	return values
}

// addressValues are what is secret in an address, as it stands there and as it is meant: the password, and the values of its query.
func addressValues(address string) (values []string) {
	both := func(value string, meant func(string) (string, error)) {
		values = append(values, value)
		if text, err := meant(value); err == nil && text != value {
			values = append(values, text)
		}
	}
	_, rest, _ := strings.Cut(address, "://")
	rest, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		_, password, ok := strings.Cut(rest[:at], ":")
		if !ok {
			password = rest[:at] // a name alone may be a key
		}
		both(password, url.PathUnescape)
	}
	query, _, _ = strings.Cut(query, "#")
	for pair := range strings.SplitSeq(query, "&") {
		_, value, _ := strings.Cut(pair, "=")
		both(value, url.QueryUnescape)
	}
	return values
}
