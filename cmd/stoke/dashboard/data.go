package dashboard

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/stokehq/stoke/plan/series"
)

// curve is a series for scripts: one array for each part of a point.
type curve struct {
	Role  string  `json:"role"`
	Name  string  `json:"name"`
	Times numbers `json:"times"` // milliseconds since 1970
	Steps numbers `json:"steps"`
	Mean  numbers `json:"mean"`
	Min   numbers `json:"min,omitempty"` // left out where no point was merged
	Max   numbers `json:"max,omitempty"`
}

// numbers are written with seven digits: a chart has fewer pixels.
type numbers []float64

// MarshalJSON writes the numbers. Whole ones keep all their digits.
func (n numbers) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 8*len(n)+2), '[')
	for i, v := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if v == float64(int64(v)) {
			b = strconv.AppendInt(b, int64(v), 10)
			continue
		}
		b = strconv.AppendFloat(b, v, 'g', 7, 64)
	}
	return append(b, ']'), nil
}

// curvesOf returns series for scripts, with at most so many points each.
func curvesOf(all []*series.Series, most int) []curve {
	curves := make([]curve, 0, len(all))
	for _, one := range all {
		c := curve{Role: one.Role, Name: one.Name}
		points := thinned(one.Points, most)
		hasRange := false
		for _, p := range points {
			c.Times = append(c.Times, float64(p.Time.UnixMilli()))
			c.Steps = append(c.Steps, float64(p.Step))
			c.Mean = append(c.Mean, p.Mean)
			hasRange = hasRange || p.Min != p.Max
		}
		if hasRange {
			for _, p := range points {
				c.Min, c.Max = append(c.Min, p.Min), append(c.Max, p.Max)
			}
		}
		curves = append(curves, c)
	}
	return curves
}

// thinned merges neighbours so that at most so many points are left.
func thinned(points []series.Point, most int) []series.Point {
	if len(points) <= most {
		return points
	}
	out := make([]series.Point, 0, most)
	for i := range most {
		part := points[i*len(points)/most : (i+1)*len(points)/most]
		p := part[len(part)-1]
		sum, count := 0.0, int64(0)
		for _, one := range part {
			sum, count = sum+one.Mean*float64(one.Count), count+one.Count
			p.Min, p.Max = min(p.Min, one.Min), max(p.Max, one.Max)
		}
		p.Mean, p.Count = sum/float64(count), count
		out = append(out, p)
	}
	return out
}

// usagePoints is the number of points of a usage curve: a run has many of them.
const usagePoints = 150

// partOf returns the part of a run's history that a request is about.
func partOf(r *http.Request, one *row) part {
	role := r.URL.Query().Get("role")
	switch {
	case r.URL.Query().Get("of") == "roles":
		return ofRoles
	case role == "":
		return ofRun
	}
	for i := range one.status.Roles { // pages know names as they show them
		if name(one.status.Roles[i].Name) == role {
			role = one.status.Roles[i].Name
			break
		}
	}
	return part{usage: true, role: role}
}

// sendSeries answers with curves of a run: the metrics of the whole run, the usage of all
// roles, or all curves of one role.
func (s *Server) sendSeries(w http.ResponseWriter, r *http.Request) {
	one, ok := s.findRun(w, r)
	if !ok {
		return
	}
	f, release := s.feeds.open(one, partOf(r, &one))
	defer release()
	if err := f.wait(r.Context()); err != nil {
		s.fail(w, r, http.StatusBadGateway, "The history cannot be read", err.Error())
		return
	}
	most := maxPoints
	if f.part == ofRoles {
		most = usagePoints
	}
	chosen := f.set.All()
	_, _, workers, number := f.timeline()
	var members curve
	for _, c := range workers {
		members.Times = append(members.Times, float64(c.at.UnixMilli()))
		members.Steps = append(members.Steps, float64(c.step))
		members.Mean = append(members.Mean, float64(c.number))
	}
	members.Name = "workers"
	sendJSON(w, map[string]any{"number": number, "curves": curvesOf(chosen, most), "workers": members,
		"started": one.status.Started.UnixMilli()})
}

// sendJSON answers with data for scripts.
func sendJSON(w http.ResponseWriter, data any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(data) //nolint:errcheck // the browser has left
}
