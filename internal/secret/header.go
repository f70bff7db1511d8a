package secret

import (
	"net/url"
	"strings"
)

const exporter = "OTEL_EXPORTER_" // begins the names of the variables that configure OpenTelemetry's exporter

// OpensCollector reports whether a variable holds credentials for an OpenTelemetry collector:
// headers, or an address with a password or a key.
func OpensCollector(name, value string) bool {
	return holdsHeaders(name) || holdsAddress(name) && strings.ContainsAny(value, "@?") || strings.HasPrefix(name, exporter) && strings.HasSuffix(name, "_PASSWORD")
}

// holdsHeaders reports whether a variable of this name holds headers: key=value,key=value.
func holdsHeaders(name string) bool {
	return strings.HasPrefix(name, exporter) && strings.HasSuffix(name, "_HEADERS")
}

// holdsAddress reports whether a variable of this name holds the address of a collector.
func holdsAddress(name string) bool {
	return strings.HasPrefix(name, exporter) && strings.HasSuffix(name, "_ENDPOINT")
}

// headerValues returns the values of the headers, both as they are written and unescaped, as they
// are sent.
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

// addressValues returns the secrets in an address, both as they are written and unescaped: the
// password, and the values of the query.
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
			password = rest[:at] // A name without a password may be a key.
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
