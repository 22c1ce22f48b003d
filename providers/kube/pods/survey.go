package pods

import (
	"context"

	"github.com/stokehq/stoke/providers"
)

var _ providers.RunSurveyor = &Set{}

// Survey implements providers.RunSurveyor. The pods of the set have no run of their own:
// their names are those of the set's roles.
func (s *Set) Survey(ctx context.Context) (providers.RunSurvey, error) {
	namespace := "" // the first in order: the order of a map is another one each time
	for _, o := range s.Objects {
		if namespace == "" || o.Namespace != "" && o.Namespace < namespace {
			namespace = o.Namespace
		}
	}
	return s.Client.Survey(ctx, namespace, nil)
}
