package secret

import (
	"strings"
	"testing"
)

// The secrets in a connection string are replaced, and nothing else of it.
func TestConnectionSecrets(t *testing.T) {
	const canary = "CNRYx9k2mQ7pT4"
	for _, c := range []struct{ variable, secret string }{
		{"DATABASE_URL=postgres://app_user_name:CNRYx9k2mQ7pT4@db.example.com:5432/customers_db?sslmode=require", canary},
		{"REDIS_URL=redis://:CNRYx9k2mQ7pT4@cache.example.com:6379/0", canary},
		{"MONGODB_URI=mongodb+srv://app_user_name:CNRYx9k2mQ7pT4@cluster0.example.net,other.example.net/customers_db", canary},
		{"AMQP=amqps://app_user_name:CNRYx9k2mQ7pT4@mq.example.com/vhostname", canary},
		{"SENTRY_DSN=https://CNRYx9k2mQ7pT4aaaaaa@o123456.ingest.example.io/4500", canary + "aaaaaa"},
		{"STRIPE=https://CNRYx9k2mQ7pT4aaaaaa:@api.example.com/v1", canary + "aaaaaa"},
		{"HTTPS_PROXY=http://app_user_name:CNRYx9k2mQ7pT4@proxy.example.com:3128", canary},
		{"HTTP_PROXY=app_user_name:CNRYx9k2mQ7pT4@proxy.example.com:3128", canary},
		{"MYSQL_DSN=app_user_name:CNRYx9k2mQ7pT4@tcp(db.example.com:3306)/customers_db", canary},
		{"SLASHED=postgres://app_user_name:CNRY/x9k2@mQ7pT4@db.example.com/customers_db", "CNRY/x9k2@mQ7pT4"},
		{"ESCAPED=postgres://app_user_name:CNRY%2Fx9k2%40mQ7pT4@db.example.com/customers_db", "CNRY/x9k2@mQ7pT4"},
		{"LIST=a, postgres://app_user_name:CNRYx9k2mQ7pT4@db.example.com/x, b", canary},
		{"LIBPQ=host=db.example.com port=5432 user=app_user_name password=CNRYx9k2mQ7pT4 dbname=customers_db", canary},
		{"QUOTED=host=db.example.com password='CNRY x9k2 mQ7pT4' dbname=customers_db", "CNRY x9k2 mQ7pT4"},
		{"JDBC=jdbc:postgresql://db.example.com/customers_db?user=app_user_name&password=CNRYx9k2mQ7pT4&ssl=true", canary},
		{"ADO=Server=tcp:db.example.com,1433;Initial Catalog=customers_db;User Id=app_user_name;Password=CNRYx9k2mQ7pT4;Encrypt=True", canary},
		{`BRACED=Driver={ODBC Driver 18};Server=db.example.com;Uid=app_user_name;Pwd={CNRY;x9k2=mQ7pT4};`, "CNRY;x9k2=mQ7pT4"},
		{"AZURE_STORAGE_CONNECTION_STRING=DefaultEndpointsProtocol=https;AccountName=myaccountname;AccountKey=CNRYx9k2/mQ7pT4+aaaaaaa==;EndpointSuffix=core.windows.net", "CNRYx9k2/mQ7pT4+aaaaaaa=="},
		{"BUS=Endpoint=sb://bus.example.com/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=CNRYx9k2/mQ7pT4+aaaaaaa=", "CNRYx9k2/mQ7pT4+aaaaaaa="},
		{"SAS=https://account.blob.example.net/container?sv=2022-11-02&sr=c&sig=CNRYx9k2mQ7pT4%2Baaaaaa%3D", "CNRYx9k2mQ7pT4+aaaaaa="},
		{"PRESIGNED=https://bucket.example.com/file.txt?X-Amz-Date=20260101T000000Z&X-Amz-Signature=CNRYx9k2mQ7pT4aaaaaa", canary + "aaaaaa"},
		{"SLACK_WEBHOOK_URL=https://hooks.slack.com/services/T00000000/B00000000/CNRYx9k2mQ7pT4aaaaaaaaaa", canary + "aaaaaaaaaa"},
		{"NOTIFY=https://discord.com/api/webhooks/123456789012345678/CNRYx9k2mQ7pT4aaaaaaaaaa", canary + "aaaaaaaaaa"},
		{"TEAMS=https://example.webhook.office.com/webhookb2/a@b/IncomingWebhook/CNRYx9k2mQ7pT4aaaaaaaaaa/c", canary + "aaaaaaaaaa"},
		{"TELEGRAM=https://api.telegram.org/bot123456:CNRYx9k2mQ7pT4aaaaaaaaaa/sendMessage", "bot123456:" + canary + "aaaaaaaaaa"},
		{"JAVA_OPTS=-Xmx1g -Djavax.net.ssl.trustStorePassword=CNRYx9k2mQ7pT4 -Dfile.encoding=UTF-8", canary},
		{`VCAP_SERVICES={"db":[{"credentials":{"username":"app_user_name","password":"CNRYx9k2mQ7pT4","hostname":"db.example.com"}}]}`, canary},
		{`SERVICES={"uri":"postgres://app_user_name:CNRYx9k2mQ7pT4@db.example.com/customers_db"}`, canary},
	} {
		name, value, _ := strings.Cut(c.variable, "=")
		r := New([]string{c.variable}, nil)
		if got := r.String("say " + c.secret + "!"); got != "say [secret "+name+"]!" {
			t.Errorf("%s: the secret became %q", name, got)
		}
		got := r.String(value)
		if strings.Contains(got, "x9k2") || strings.Count(got, "[secret ") != 1 {
			t.Errorf("%s became %q", value, got)
		}
		for _, word := range []string{"app_user_name", "db.example.com", "customers_db", "proxy.example.com", "myaccountname", "RootManageSharedAccessKey", "T00000000", "B00000000", "o123456"} {
			if strings.Contains(value, word) && !strings.Contains(got, word) {
				t.Errorf("%s became %q, without %s", value, got, word)
			}
		}
	}
}

// Words of ordinary texts are not replaced.
func TestConnectionsWithoutSecrets(t *testing.T) {
	for _, variable := range []string{
		"DATABASE_URL=postgres://postgres:postgres@localhost:5432/postgres", "A=postgres://customers:customers@localhost/x", "B=postgres://user:customers@localhost/customers",
		"C=mysql://localhost:3306/customers", "D=host=localhost password=postgres dbname=customers", "E=host=localhost password=customers dbname=customers",
		"F=https://github.com/owner/repository/tree/0123456789abcdef0123456789abcdef01234567", "G=git@github.com:owner/repository.git", "H=ssh://git@github.com/owner/repository",
		"I=https://cdn.example.com:8080/npm/package@1.2.3/dist/file-0123456789.js", "J=mailto:somebody@example.com", "K=sort_key=created_at;partition_key=customer_id",
		"L=https://longusername@example.com/", "M=https://example.com/?page=0123456789abcdef&sort=created_at", "LS_COLORS=*.key=00;31:*.pem=00;31:", "N=a=b c=d",
		"O=-Djavax.net.ssl.keyStorePassword=changeit", "P=/usr/lib/jvm/java-17-openjdk-amd64", "Q=unix:path=/run/user/1000/bus,guid=0123456789abcdef0123456789abcdef",
		"R=--password-file=/run/secrets/database_password", "S=12:34:56@host", "T=https://registry.example.com/@scope/package2name", "U={\"name\":\"customers\",\"port\":5432}",
		"V=redis://localhost:6379", "W=password", "X=https://example.com/hooks", "DOCKER=tcp://127.0.0.1:2376", "PWDS=pwd=/home/user/project1",
	} {
		if r := New([]string{variable}, nil); !r.Empty() {
			t.Errorf("%s: %q", variable, r.needles[0].text)
		}
	}
}

// A value with every special character is recognized in the encodings of other programs.
func TestSpellingsOfOthers(t *testing.T) {
	const value = `CNRY+a/b=é"ü'$x&😀 ~z\y`
	r := New([]string{"A_KEY=" + value}, nil)
	for by, text := range map[string]string{
		"urllib.parse.quote":       `CNRY%2Ba/b%3D%C3%A9%22%C3%BC%27%24x%26%F0%9F%98%80%20~z%5Cy`,
		"urllib.parse.quote, none": `CNRY%2Ba%2Fb%3D%C3%A9%22%C3%BC%27%24x%26%F0%9F%98%80%20~z%5Cy`,
		"urllib.parse.quote_plus":  `CNRY%2Ba%2Fb%3D%C3%A9%22%C3%BC%27%24x%26%F0%9F%98%80+~z%5Cy`,
		"encodeURIComponent":       `CNRY%2Ba%2Fb%3D%C3%A9%22%C3%BC'%24x%26%F0%9F%98%80%20~z%5Cy`,
		"encodeURI":                `CNRY+a/b=%C3%A9%22%C3%BC'$x&%F0%9F%98%80%20~z%5Cy`,
		"small percents":           `CNRY%2ba%2fb%3d%c3%a9%22%c3%bc%27%24x%26%f0%9f%98%80%20~z%5cy`,
		"json.dumps":               `CNRY+a/b=\u00e9\"\u00fc'$x&\ud83d\ude00 ~z\\y`,
		"json.dumps, capitals":     `CNRY+a/b=\u00E9\"\u00FC'$x&\uD83D\uDE00 ~z\\y`,
		"json_encode":              `CNRY+a\/b=\u00e9\"\u00fc'$x&\ud83d\ude00 ~z\\y`,
		"Go's json":                `CNRY+a/b=é\"ü'$x\u0026😀 ~z\\y`,
		"repr":                     `CNRY+a/b=é"ü\'$x&😀 ~z\\y`,
		"repr of bytes":            `CNRY+a/b=\xc3\xa9"\xc3\xbc\'$x&\xf0\x9f\x98\x80 ~z\\y`,
		"shlex.quote":              `CNRY+a/b=é"ü'"'"'$x&😀 ~z\y`,
		"export -p of dash":        `CNRY+a/b=é"ü'\''$x&😀 ~z\y`,
		"export -p of bash":        `CNRY+a/b=é\"ü'\$x&😀 ~z\\y`,
		"html.escape":              `CNRY+a/b=é&quot;ü&#x27;$x&amp;😀 ~z\y`,
		"XML":                      `CNRY+a/b=é"ü'$x&amp;😀 ~z\y`,
	} {
		if got := r.String("<" + text + ">"); got != "<[secret A_KEY]>" {
			t.Errorf("%s: %q", by, got)
		}
	}
}
