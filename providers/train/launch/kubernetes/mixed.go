package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers/train/launch"
)

// mixed says which pods of a run have another image than the rest under the same
// name, which has moved since those began; "" is none. A reference with a digest
// cannot move, and containers that a webhook adds have images of their own.
func (s *sight) mixed(p launch.Placement) string {
	of, order := s.byDigest(p)
	if len(order) < 2 {
		return ""
	}
	var parts []string
	for _, digest := range order {
		roles := of[digest]
		text := strings.Join(roles[:min(len(roles), 3)], ", ")
		if more := len(roles) - 3; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, fmt.Sprintf("%.19s on %s", digest, text))
	}
	return fmt.Sprintf("the image %s has moved: its pods run %s", p.Image, strings.Join(parts, "; "))
}

// byDigest gives the roles that run each image, by its digest, and the digests in
// the order in which their first pods began.
func (s *sight) byDigest(p launch.Placement) (of map[string][]string, order []string) {
	of = make(map[string][]string)
	if strings.Contains(p.Image, "@") {
		return of, nil
	}
	for _, pod := range byAge(s.pods) {
		for _, c := range pod.Status.ContainerStatuses {
			digest := digestOf(c.ImageID)
			if c.Name != container || c.State.Running == nil || pod.DeletionTimestamp != nil || digest == "" {
				continue
			}
			if of[digest] == nil {
				order = append(order, digest)
			}
			of[digest] = append(of[digest], roleName(&pod))
		}
	}
	return of, order
}

// digests lists the images that a run's pods have, in order.
func (s *sight) digests(p launch.Placement) []string {
	of, _ := s.byDigest(p)
	return slices.Sorted(maps.Keys(of))
}

// noteMix writes down with which images a run is stopped that has several. Where it
// has no others once it goes on, that is how its nodes name one image, and no
// reason to stop it again.
func (c *cluster) noteMix(ctx context.Context, s *sight) error {
	p, err := s.placement()
	if err != nil {
		return err
	}
	all := s.digests(p)
	if len(all) < 2 {
		return nil
	}
	return c.patch(ctx, configMaps, s.config.Name, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, mixAnnotation, strings.Join(all, " ")))
}

// unmixable tells images that the run had before it was stopped, all of them.
func (s *sight) unmixable(p launch.Placement) bool {
	before := strings.Fields(s.config.Annotations[mixAnnotation])
	return !slices.ContainsFunc(s.digests(p), func(d string) bool { return !slices.Contains(before, d) })
}

// digestOf is the digest in a container's image id, which runtimes give as
// REPOSITORY@DIGEST or as the digest alone.
func digestOf(id string) string { return id[strings.LastIndexByte(id, '@')+1:] }

// unmix has the status of a run whose pods have different images say so. Where
// nodes pull the image for each pod, making the pods anew brings all of them to
// one; where they keep what they have, it need not.
func (s *sight) unmix(state *launch.State, p launch.Placement) {
	why := s.mixed(p)
	switch {
	case why == "" || state.Phase.Final() || launch.Idle(state.Phase):
	case pulls(p) && p.Durable() && !state.DiesWithCoordinator && !s.unmixable(p):
		state.RestartReason = strings.TrimPrefix(state.RestartReason+"; "+why, "; ")
	default:
		state.Warnings = append(state.Warnings, why+"; name it by its digest, as train_image gives it out, and all pods have the same")
	}
}

// pulls tells whether nodes ask the registry for the image at each start of a
// pod: https://kubernetes.io/docs/concepts/containers/images.
func pulls(p launch.Placement) bool {
	if p.PullPolicy != "" {
		return p.PullPolicy == string(core.PullAlways)
	}
	name := p.Image[strings.LastIndexByte(p.Image, '/')+1:]
	_, tag, tagged := strings.Cut(name, ":")
	return !tagged || tag == "latest"
}
