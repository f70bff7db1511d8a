package secret

import (
	"net/url"
	"strings"
)

// HoldsHeaders says whether a variable of this name holds headers that open a collector of OpenTelemetry's: key=value,key=value.
func HoldsHeaders(name string) bool {
	return strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") && strings.HasSuffix(name, "_HEADERS")
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
