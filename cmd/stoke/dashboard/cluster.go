package dashboard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers"
)

// Bounds of the screen of clusters.
const (
	maxNodes   = 200 // of a place
	maxTenants = 12  // runs and others in the row of a node
	maxWaiting = 100
)

// placeView is a cluster, or this machine, as pages show it.
type placeView struct {
	Key, Name string
	Partly    string
	Error     string
	CPU       string // asked for, of all
	Memory    string
	GPUs      string
	Nodes     []nodeView
	Left      int // nodes that are not shown
	Waiting   []waitView
	More      int // of those that wait
}

// nodeView is a machine of a place.
type nodeView struct {
	Name, Phase, Kind string
	CPU, Memory, GPUs string
	Model             string
	Users             []userView
	Others            string // tenants that belong to no run of this dashboard
	Holders           []pair // of GPUs
}

// userView is a run on a node.
type userView struct {
	Run, Name string // key and name of the run
	Text      string // its roles, and what they use
}

// waitView is what waits for a place.
type waitView struct {
	Run, Name string // Run "": it belongs to no run of this dashboard
	Asks      string
	Since     string `json:"-"` // it grows, which does not count as a change of the page
	Reason    string
}

// usage is what some tenants ask for, or use.
type usage struct {
	cpu    float64
	memory int64
	gpus   int64
	roles  []string
}

func (u *usage) add(cpu float64, memory, gpus int64) {
	u.cpu, u.memory, u.gpus = u.cpu+cpu, u.memory+memory, u.gpus+gpus
}

// text returns what tenants use, for people.
func (u *usage) text() string {
	var parts []string
	if u.cpu > 0 {
		parts = append(parts, "CPU "+processors(u.cpu))
	}
	if u.memory > 0 {
		parts = append(parts, size(float64(u.memory)))
	}
	if u.gpus > 0 {
		parts = append(parts, counted(u.gpus, "GPU"))
	}
	return strings.Join(parts, ", ")
}

// processors returns a number of processors for people.
func processors(n float64) string { return strconv.FormatFloat(n, 'g', 3, 64) }

// counted returns a number with its noun.
func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return integer(n) + " " + noun + "s"
}

// share returns a part and the whole for people; the whole is left out where it is not
// known. Of a survey that is not whole, the part is a bound.
func share(is providers.RunSurvey, part, whole string, isKnown bool) string {
	if is.Partly != "" {
		part = "at least " + part
	}
	if !isKnown {
		return part
	}
	return part + " of " + whole
}

// owners finds the runs that tenants belong to.
type owners struct {
	rows  []row
	byRun map[string]*row // by the id of the run
	byPod map[podKey]*row
}

// podKey is a pod of a place: clusters may have pods of the same name.
type podKey struct{ place, pod string }

// newOwners returns the owners among some runs; places are those of the runs.
func newOwners(rows []row, places []surveyed) *owners {
	ids := make(map[string]string, len(places))
	for _, p := range places {
		ids[p.key] = p.survey.ID
	}
	o := &owners{rows: rows, byRun: make(map[string]*row), byPod: make(map[podKey]*row)}
	for i := range rows {
		r := &rows[i]
		if r.run == nil {
			continue
		}
		o.byRun[r.status.Run] = r
		id, isKnown := ids[keyOfPlace(r)]
		for _, role := range r.status.Roles {
			if isKnown && role.Pod != "" && r.isLive() {
				o.byPod[podKey{id, role.Pod}] = r
			}
		}
	}
	return o
}

// find returns the run of a tenant of a place; nil: no run of this dashboard.
func (o *owners) find(place string, t providers.RunTenant) *row {
	if t.Run != "" {
		return o.byRun[t.Run]
	}
	return o.byPod[podKey{place, t.Name}]
}

// placeOf returns a survey for pages.
func placeOf(is providers.RunSurvey, own *owners, now time.Time) placeView {
	v := placeView{Key: placeKey(is.ID), Name: name(is.Place), Partly: cleanText(is.Partly, longestText, true)}
	var used, all usage
	for _, n := range is.Nodes {
		if n.Name == "" && len(n.Tenants) == 0 && !is.IsHere {
			continue
		}
		one, uses := nodeOf(n, own, is)
		used.add(uses.cpu, uses.memory, uses.gpus)
		all.add(n.CPU, n.Memory, n.GPUs)
		if len(v.Nodes) == maxNodes {
			v.Left++
			continue
		}
		v.Nodes = append(v.Nodes, one)
	}
	v.CPU = share(is, processors(used.cpu), processors(all.cpu), all.cpu > 0)
	v.Memory = share(is, size(float64(used.memory)), size(float64(all.memory)), all.memory > 0)
	v.GPUs = share(is, integer(used.gpus), integer(all.gpus), all.gpus > 0)
	if is.IsHere {
		v.Waiting = waitingHere(own.rows, now)
	}
	for _, t := range is.Pending {
		u := usage{cpu: t.CPU, memory: t.Memory, gpus: t.GPUs}
		w := waitView{Name: name(t.Name), Asks: u.text(), Reason: cleanText(t.Reason, longestText, false)}
		if !t.Since.IsZero() {
			w.Since = duration(now.Sub(t.Since))
		}
		if r := own.find(is.ID, t); r != nil {
			w.Run = keyOf(r.Address)
			w.Name = shortName(r.Address) + " · " + w.Name
		}
		v.Waiting = append(v.Waiting, w)
	}
	if n := len(v.Waiting) - maxWaiting; n > 0 {
		v.Waiting, v.More = v.Waiting[:maxWaiting], n
	}
	return v
}

// placeKey returns the name of a place that scripts find it by.
func placeKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "place-" + hex.EncodeToString(sum[:8])
}

// nodeOf returns a node for pages, and what its tenants use.
func nodeOf(n providers.RunNode, own *owners, is providers.RunSurvey) (v nodeView, all usage) {
	v = nodeView{Name: name(n.Name), Phase: n.Phase, Kind: "running", Model: name(n.GPUModel)}
	switch n.Phase {
	case "not ready":
		v.Kind = "bad"
	case "cordoned":
		v.Kind = "waiting"
	case "":
		v.Kind, v.Phase = "over", "unknown"
	}
	runs := make(map[*row]*usage)
	add := func(r *row, role string, cpu float64, memory, gpus int64) {
		u := runs[r]
		if u == nil {
			u = new(usage)
			runs[r] = u
		}
		u.add(cpu, memory, gpus)
		u.roles = append(u.roles, role)
		all.add(cpu, memory, gpus)
	}
	for _, t := range n.Tenants {
		add(own.find(is.ID, t), name(t.Name), t.CPU, t.Memory, t.GPUs)
	}
	if is.IsHere {
		addRoles(n.Name, own, add)
	}
	for _, h := range n.Holders {
		by := name(h.By)
		if h.By == "" {
			by = "free"
		} else {
			all.gpus++
		}
		v.Holders = append(v.Holders, pair{name(h.GPU), by})
	}
	v.users(runs)
	v.CPU = share(is, processors(all.cpu), processors(n.CPU), n.CPU > 0)
	v.Memory = share(is, size(float64(all.memory)), size(float64(n.Memory)), n.Memory > 0)
	v.GPUs = "–"
	if n.GPUs > 0 || all.gpus > 0 {
		v.GPUs = share(is, integer(all.gpus), integer(n.GPUs), n.GPUs > 0)
	}
	return v, all
}

// addRoles adds the roles of the runs on this machine, with what they use: they ask for
// nothing.
func addRoles(node string, own *owners, add func(r *row, role string, cpu float64, memory, gpus int64)) {
	for i := range own.rows {
		r := &own.rows[i]
		if !r.isLive() {
			continue
		}
		for _, role := range r.status.Roles {
			if role.Node != node || kind(role.Phase) != "running" {
				continue
			}
			cpu, memory := 0.0, int64(0)
			if role.Usage != nil {
				cpu, memory = role.Usage.CPU, role.Usage.Memory
			}
			add(r, name(role.Name), cpu, memory, 0)
		}
	}
}

// users lists the runs on a node, those with the most GPUs and processors first.
func (v *nodeView) users(runs map[*row]*usage) {
	others := runs[nil]
	delete(runs, nil)
	order := slices.SortedFunc(maps.Keys(runs), func(a, b *row) int {
		return cmp.Or(cmp.Compare(runs[b].gpus, runs[a].gpus), cmp.Compare(runs[b].cpu, runs[a].cpu), strings.Compare(a.Address, b.Address))
	})
	for i, r := range order {
		if i == maxTenants {
			v.Others = counted(int64(len(order)-i), "other run") + "; "
			break
		}
		u := runs[r]
		text := counted(int64(len(u.roles)), "role")
		if len(u.roles) == 1 {
			text = u.roles[0]
		}
		if uses := u.text(); uses != "" {
			text += ": " + uses
		}
		v.Users = append(v.Users, userView{keyOf(r.Address), shortName(r.Address), text})
	}
	if others != nil {
		v.Others += counted(int64(len(others.roles)), "other pod")
		if uses := others.text(); uses != "" {
			v.Others += ": " + uses
		}
	}
	v.Others = strings.TrimSuffix(v.Others, "; ")
}

// waitingHere returns the roles on this machine that wait, such as for a GPU, and the runs
// that wait as a whole.
func waitingHere(rows []row, now time.Time) (all []waitView) {
	for i := range rows {
		r := &rows[i]
		if !r.isLive() || r.status.Where != "this machine" {
			continue
		}
		before := len(all)
		for _, role := range r.status.Roles {
			if role.Reason == "" {
				continue
			}
			w := waitView{Run: keyOf(r.Address), Name: shortName(r.Address) + " · " + name(role.Name)}
			w.Reason = cleanText(role.Reason, longestText, false)
			if !role.Since.IsZero() {
				w.Since = duration(now.Sub(role.Since))
			}
			all = append(all, w)
		}
		if len(all) == before && kind(r.status.Phase) == "waiting" {
			why := cleanText(r.status.Message, longestText, false)
			all = append(all, waitView{Run: keyOf(r.Address), Name: shortName(r.Address), Reason: why})
		}
	}
	return all
}

// placesOf returns all places for pages, and the runs that wait and whose place is not
// among them.
func (s *Server) placesOf(r *http.Request) ([]placeView, error) {
	rows, err := s.board.rows(r.Context(), firstWait)
	if err != nil {
		return nil, err
	}
	places, now := s.surveys.read(r.Context(), rows, firstWait), time.Now()
	own := newOwners(rows, places)
	var all []placeView
	for _, one := range places {
		switch {
		case one.err != nil:
			all = append(all, failedPlace(one, own, now))
		case one.read.IsZero():
			all = append(all, placeView{Key: placeKey(one.key), Name: name(one.key), Partly: "Reading…"})
		default:
			all = append(all, placeOf(one.survey, own, now))
		}
	}
	slices.SortStableFunc(all, func(a, b placeView) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b placeView) bool { return a.Key == b.Key }), nil
}

// failedPlace returns a place whose newest survey failed, with the last one that did not.
func failedPlace(one surveyed, own *owners, now time.Time) placeView {
	v, reason := placeView{Key: placeKey(one.key), Name: name(one.key)}, cleanText(one.err.Error(), longestText, true)
	if !one.known.IsZero() {
		v = placeOf(one.survey, own, now)
		reason += "\nThe page shows the numbers of " + clock(one.known) + "."
	}
	v.Error = reason
	return v
}

// showCluster answers with the machines of all runs.
func (s *Server) showCluster(w http.ResponseWriter, r *http.Request) {
	all, err := s.placesOf(r)
	if err != nil {
		s.fail(w, r, http.StatusBadGateway, "The runs cannot be listed", err.Error())
		return
	}
	s.show(w, http.StatusOK, layout{Page: "cluster", Title: "Cluster", Body: map[string]any{"Places": all}})
}

// streamCluster tells of each change of the page: the script reads the page again, and
// replaces the parts of it that differ.
func (s *Server) streamCluster(w http.ResponseWriter, r *http.Request) {
	st, end := s.begin(w, r)
	defer end()
	sent := ""
	st.keep(everyStatus, func() error {
		all, err := s.placesOf(r.WithContext(st.ctx))
		if err != nil {
			return st.send("trouble", cleanText(err.Error(), longestText, true))
		}
		text, err := json.Marshal(all)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		version := hex.EncodeToString(sum[:8])
		if version == sent {
			return nil
		}
		sent = version
		return st.send("cluster", version)
	})
}
