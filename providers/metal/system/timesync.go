package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// TimeServices are the services that are known to keep a clock right, the
// better ones first. chronyd is chrony's name on RHEL.
var TimeServices = []string{"chrony", "systemd-timesyncd", "chronyd", "ntpsec", "ntp", "openntpd"}

const (
	timesyncdFile = "/etc/systemd/timesyncd.conf.d/99-stoke.conf"
	chronyFile    = "/etc/chrony/sources.d/stoke.sources"
)

// TimeFacts is what keeps the clock right.
type TimeFacts struct {
	services map[string]host.Unit
	files    map[string]string
}

func timeUnits() []string {
	var units []string
	for _, s := range TimeServices {
		units = append(units, s+".service")
	}
	return units
}

func (t *TimeFacts) unit(service string) host.Unit { return t.services[service+".service"] }

func keeps(u host.Unit) bool { return u.Active == "active" && u.File == "enabled" }

// Service is the declared service, else a running one, else an installed one;
// "" where there is none.
func (t *TimeFacts) Service(want Time) string {
	if want.Service != "" {
		return want.Service
	}
	for _, is := range []func(host.Unit) bool{keeps, func(u host.Unit) bool { return u.Load == "loaded" }} {
		for _, s := range TimeServices {
			if is(t.unit(s)) {
				return s
			}
		}
	}
	return ""
}

// serversFile is where a service gets its servers from, and what it holds.
func serversFile(service string, servers []string) (name, text string) {
	const head = "# Written by stoke.\n"
	switch service {
	case "systemd-timesyncd":
		return timesyncdFile, head + "[Time]\nNTP=" + strings.Join(servers, " ") + "\n"
	case "chrony":
		for _, s := range servers {
			text += "server " + s + " iburst\n"
		}
		return chronyFile, head + text
	}
	return "", ""
}

// Servers are the servers that stoke's file names.
func (t *TimeFacts) Servers(want Time) []string {
	service := t.Service(want)
	name, _ := serversFile(service, nil)
	var servers []string
	for line := range strings.SplitSeq(t.files[name], "\n") {
		if list, ok := strings.CutPrefix(line, "NTP="); ok && service == "systemd-timesyncd" {
			servers = append(servers, strings.Fields(list)...)
		}
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "server" && service == "chrony" {
			servers = append(servers, fields[1])
		}
	}
	return servers
}

// Display is the service that keeps the clock right, else what is wrong with it.
func (t *TimeFacts) Display(want Time) string {
	service := t.Service(want)
	u := t.unit(service)
	switch {
	case service == "":
		return "none is installed"
	case u.Load != "loaded":
		return service + " is not installed"
	case u.Active != "active" && u.File != "enabled":
		return service + " is " + u.Active + " and " + u.File
	case u.Active != "active":
		return service + " is " + u.Active
	case u.File != "enabled":
		return service + " is " + u.File
	}
	return service
}

func (t *TimeFacts) missing(want Time) error {
	service := t.Service(want)
	if service != "" && t.unit(service).Load == "loaded" {
		return nil
	}
	return fmt.Errorf("no time service: install one, such as packages = { %s = {} }", cmp.Or(service, "chrony"))
}

func diffTime(want Time, have *TimeFacts) []host.Change {
	var changes []host.Change
	service := have.Service(want)
	if shown := have.Display(want); shown != service || service == "" {
		changes = append(changes, host.Change{Fact: "time service", Path: []string{"time_sync", "service"}, Have: shown, Want: cmp.Or(service, "any")})
	}
	if name, text := serversFile(service, want.Servers); len(want.Servers) > 0 && have.files[name] != text {
		changes = append(changes, host.Change{Fact: "time servers", Path: []string{"time_sync", "servers"},
			Have: strings.Join(have.Servers(want), ", "), Want: strings.Join(want.Servers, ", ")})
	}
	return changes
}

const timeKey = "system time "

type timeWas struct{ Enabled, Active bool }

// startTime enables service $1 without having systemd reload, which running
// containers may lose their GPUs by, and starts it; with $2 = restart, anew.
const startTime = `# start the time service
set -e
[ "$(systemctl is-enabled -- "$1" 2>/dev/null)" = enabled ] || systemctl enable --no-reload --quiet -- "$1"
systemctl "$2" -- "$1"
systemctl is-active --quiet -- "$1" || { echo "$1 does not stay active:" >&2; systemctl status --no-pager -n 10 -- "$1" >&2; exit 1; }`

func applyTime(ctx context.Context, m host.Machine, rec *host.Record, want Time, have *TimeFacts) error {
	if len(diffTime(want, have)) == 0 {
		return nil
	}
	if err := have.missing(want); err != nil {
		return err
	}
	service := have.Service(want)
	verb := "start"
	if len(want.Servers) > 0 {
		name, text := serversFile(service, want.Servers)
		if name == "" {
			return fmt.Errorf("stoke sets time servers for chrony and systemd-timesyncd, not for %s: write its configuration with files", service)
		}
		if have.files[name] != text {
			if err := rec.MakeFolder(ctx, part, path.Dir(name)); err != nil {
				return err
			}
			if err := rec.WriteFile(ctx, name, []byte(text)); err != nil {
				return err
			}
			verb = "restart"
		}
	}
	return host.Do(ctx, m, "start "+service, startTime, service, verb)
}

// stopTime puts a service back: $2 whether it was enabled, $3 whether it ran, $4 restart or start.
const stopTime = `# give back the time service
[ "$(systemctl show -p LoadState --value -- "$1")" = loaded ] || exit 0
[ "$2" = true ] || systemctl disable --no-reload --quiet -- "$1"
if [ "$3" = true ]; then systemctl "$4" -- "$1"; else systemctl stop -- "$1"; fi`

func restoreTime(ctx context.Context, m host.Machine, rec *host.Record, want *Time) ([]host.Outcome, error) {
	var outcomes []host.Outcome
	for _, note := range rec.Keys(timeKey) {
		service := strings.TrimPrefix(note, timeKey)
		if want != nil && (want.Service == "" || want.Service == service) {
			if err := restoreServers(ctx, m, rec, service, want); err != nil {
				return outcomes, err
			}
			continue
		}
		var was timeWas
		if _, err := rec.ReadNote(note, &was); err != nil {
			return outcomes, err
		}
		verb := "start"
		if name, _ := serversFile(service, nil); slices.Contains(rec.KeptFiles(), name) {
			verb = "restart"
			if _, err := rec.RestoreFile(ctx, name); err != nil {
				return outcomes, err
			}
		}
		if _, err := host.Script(ctx, m, stopTime, service, fmt.Sprint(was.Enabled), fmt.Sprint(was.Active), verb); err != nil {
			return outcomes, fmt.Errorf("put %s back: %w", service, err)
		}
		outcomes = append(outcomes, host.Outcome{Fact: "time service " + service, Fate: host.Restored})
		if err := rec.Forget(ctx, note); err != nil {
			return outcomes, err
		}
	}
	return outcomes, nil
}

// restoreServers takes stoke's list of servers away where none is declared any
// more, while the service stays.
func restoreServers(ctx context.Context, m host.Machine, rec *host.Record, service string, want *Time) error {
	name, _ := serversFile(service, nil)
	if len(want.Servers) > 0 || !slices.Contains(rec.KeptFiles(), name) {
		return nil
	}
	_, err := rec.RestoreFile(ctx, name)
	_, restart := host.Run(ctx, m, "systemctl", "try-restart", "--", service)
	return errors.Join(err, restart)
}
