package source

import (
	"os"
	"path/filepath"
	"strings"
)

// netrc finds the login for a host in the file that NETRC names, else in
// .netrc of the home folder, as curl and git do.
func netrc(environ []string, host string) (login, password string, ok bool) {
	name := getenv(environ, "NETRC")
	if home := getenv(environ, "HOME"); name == "" && home != "" {
		name = filepath.Join(home, ".netrc")
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return "", "", false
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", "", false
	}
	words := strings.Fields(withoutComments(string(text)))
	mine := false
	for i := 0; i < len(words); i++ {
		value := ""
		if i+1 < len(words) {
			value = words[i+1]
		}
		switch words[i] {
		case "machine", "default":
			if mine && password != "" {
				return login, password, true
			}
			mine, login, password = words[i] == "default" || strings.EqualFold(value, host), "", ""
			if words[i] == "machine" {
				i++
			}
		case "login":
			if i++; mine {
				login = value
			}
		case "password":
			if i++; mine {
				password = value
			}
		case "account":
			i++
		}
	}
	return login, password, mine && password != ""
}

func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// getenv returns the last value of a variable in an environment.
func getenv(environ []string, name string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}
