package train

import (
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/providers/train/launch/local"
)

// trainingRun is one run, and who can reach it.
type trainingRun struct {
	launch.Launcher
	id string
}

func (r trainingRun) where() launch.Location { return r.Location(r.id) }

// launcher gives who starts new runs. This is the one place that knows where
// experiments can run.
func (s *settings) launcher() launch.Launcher { return s.launcherIn(s.runs) }

// launcherIn gives who started the runs in that place.
func (s *settings) launcherIn(place string) launch.Launcher {
	return local.New(place, func() (string, error) {
		t, err := findTrainer(s.given)
		return string(t), err
	})
}

// run is the recorded one. The provider block may name another place by now.
func (s *settings) run(m *experimentModel) trainingRun {
	return trainingRun{s.launcherIn(m.RunsDir.ValueString()), m.ID.ValueString()}
}

// locate finds out which run somebody wants to import.
func (s *settings) locate(given string) (trainingRun, error) {
	given, err := expandHome(given)
	if err != nil {
		return trainingRun{}, err
	}
	place, id, err := local.Locate(given, s.runs)
	return trainingRun{s.launcherIn(place), id}, err
}
