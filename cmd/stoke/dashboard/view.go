package dashboard

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers"
)

// view is a run as pages show it.
type view struct {
	Address string // its key
	Name    string // without the type, where all runs have one type
	Phase   string
	Kind    string // class of the phase
	Message string
	Percent float64 // negative: unknown
	Trains  bool
	Cells   map[string]value
	Metrics []pair
	Roles   []roleView
}

// pair is a name with its value.
type pair struct{ Name, Value string }

// roleView is a role as pages show it.
type roleView struct {
	Run, RunName, Name string
	Phase, Kind, Node  string
	Reason             string
	Partly             string
	Cells              map[string]value
}

// viewOf returns a run for pages, with its roles or only with their number.
func viewOf(r *row, now time.Time, withRoles bool) view {
	v := view{Address: keyOf(r.Address), Name: shortName(r.Address), Percent: -1, Cells: make(map[string]value)}
	s := &r.status
	switch {
	case r.read.IsZero():
		v.Phase, v.Kind = "reading", "waiting"
	case r.run == nil && r.err != nil && !r.isGone():
		v.Phase, v.Kind, v.Message = "unknown", "bad", cleanText(r.err.Error(), longestText, true)
	case r.run == nil:
		v.Phase, v.Kind, v.Message = "gone", "over", "Nothing is left of the run, or it has not begun."
	default:
		v.Phase, v.Kind, v.Message = name(s.Phase), kind(s.Phase), cleanText(s.Message, longestText, true)
		if r.err != nil {
			v.Message = cleanText("The newest status cannot be read: "+r.err.Error(), longestText, true)
		}
	}
	v.Trains = s.Trains
	if s.Percent > 0 || s.Percent == 0 && s.Trains {
		v.Percent = min(100, s.Percent)
	}
	v.cells(s, now)
	for _, key := range slices.Sorted(maps.Keys(s.Metrics)) {
		v.Metrics = append(v.Metrics, pair{name(key), number(s.Metrics[key])})
	}
	v.Cells["roles"] = value{integer(int64(len(s.Roles))), 0}
	for i := range s.Roles {
		if !withRoles {
			break
		}
		v.Roles = append(v.Roles, roleOf(v.Address, v.Name, &s.Roles[i], now))
	}
	return v
}

// cells sets the values that change while a run is live.
func (v *view) cells(s *providers.RunStatus, now time.Time) {
	set := func(key string, isKnown bool, text string, sort float64) {
		if !isKnown || math.IsNaN(sort) {
			v.Cells[key] = none
			return
		}
		v.Cells[key] = value{text, sort}
	}
	metric := func(key string, names ...string) {
		for _, n := range names {
			if x, ok := s.Metrics[n]; ok {
				set(key, true, number(x), x)
				return
			}
		}
		v.Cells[key] = none
	}
	metric("accuracy", "accuracy", "validation_accuracy", "val_accuracy", "top1")
	metric("loss", "loss", "train_loss", "validation_loss")
	metric("speed", "samples_per_second")
	took := secondsOf(s, now)
	set("duration", took >= 0, duration(took), took.Seconds())
	set("started", !s.Started.IsZero(), clock(s.Started), float64(s.Started.Unix()))
	set("ended", !s.Ended.IsZero(), clock(s.Ended), float64(s.Ended.Unix()))
	set("workers", s.Wanted > 0 || s.Workers > 0, fmt.Sprintf("%d / %d", s.Workers, s.Wanted), float64(s.Workers))
	set("step", s.Trains, integer(s.Step), float64(s.Step))
	set("progress", v.Percent >= 0, fmt.Sprintf("%.0f %%", v.Percent), v.Percent)
	set("words", s.Progress != "", cleanText(s.Progress, longestName, false), 0)
	set("epoch", s.Epochs > 0, fmt.Sprintf("%d / %d", s.Epoch, s.Epochs), float64(s.Epoch))
	set("checkpoint", s.Trains && s.Checkpoint >= 0, "step "+integer(s.Checkpoint), float64(s.Checkpoint))
	set("phase", true, v.Phase, float64(strings.Index("running waiting good over bad", v.Kind)))
}

// roleOf returns a role for pages.
func roleOf(run, runName string, role *providers.RunRole, now time.Time) roleView {
	v := roleView{
		Run: run, RunName: runName, Name: name(role.Name), Phase: name(role.Phase), Kind: kind(role.Phase), Node: name(role.Node),
		Reason: cleanText(role.Reason, longestText, false), Cells: make(map[string]value),
	}
	v.Cells["phase"] = value{v.Phase, 0}
	v.Cells["restarts"] = value{strconv.Itoa(role.Restarts), float64(role.Restarts)}
	v.Cells["since"] = none
	if !role.Since.IsZero() {
		v.Cells["since"] = value{duration(now.Sub(role.Since)), now.Sub(role.Since).Seconds()}
	}
	for _, key := range usageNames {
		v.Cells[key] = none
	}
	v.Cells["address"] = none
	if role.Address != "" {
		v.Cells["address"] = value{name(role.Address), 0}
	}
	if u := role.Usage; u != nil {
		v.Partly = cleanText(u.Partly, longestText, false)
		for key, x := range map[string]float64{
			"cpu": u.CPU, "memory_bytes": float64(u.Memory), "received_per_second": u.Received, "sent_per_second": u.Sent,
			"read_per_second": u.Read, "written_per_second": u.Written,
		} {
			v.Cells[key] = value{usageText(key, x), x}
		}
		if !u.Network {
			v.Cells["received_per_second"], v.Cells["sent_per_second"] = none, none
		}
		if u.Limit > 0 {
			v.Cells["memory_bytes"] = value{size(float64(u.Memory)) + " of " + size(float64(u.Limit)), float64(u.Memory)}
		}
	}
	return v
}

// usageNames are the numbers of a role's usage that pages show.
var usageNames = []string{"cpu", "memory_bytes", "received_per_second", "sent_per_second", "read_per_second", "written_per_second"}

// usageText returns one number of a role's usage for people.
func usageText(key string, x float64) string {
	switch {
	case key == "cpu":
		return strconv.FormatFloat(x, 'f', 2, 64)
	case strings.HasSuffix(key, "_per_second"):
		return size(x) + "/s"
	}
	return size(x)
}

// shortName returns an address without the type of experiments, which most runs have.
func shortName(address string) string {
	at := strings.LastIndex(address, "train_experiment.")
	if at < 0 {
		return name(address)
	}
	return name(address[:at] + address[at+len("train_experiment."):])
}

// setting is one line of a configuration.
type setting struct {
	Path, Value string
	IsLong      bool
}

// Groups of settings, in the order of a page.
type settingGroup struct {
	Title    string
	Settings []setting
}

// settingsOf returns the arguments of a run in groups.
func settingsOf(configuration map[string]string) []settingGroup {
	const hyperparameters = "hyperparameters."
	var hyper, blocks, rest []setting
	for _, path := range slices.Sorted(maps.Keys(configuration)) {
		text := cleanText(configuration[path], longestText, true)
		line := setting{name(path), text, len(text) > 60}
		switch {
		case strings.HasPrefix(path, hyperparameters):
			line.Path = name(path[len(hyperparameters):])
			hyper = append(hyper, line)
		case strings.Contains(path, "."):
			blocks = append(blocks, line)
		default:
			rest = append(rest, line)
		}
	}
	var groups []settingGroup
	for _, g := range []settingGroup{{"Hyperparameters", hyper}, {"Experiment", rest}, {"Blocks", blocks}} {
		if len(g.Settings) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}
