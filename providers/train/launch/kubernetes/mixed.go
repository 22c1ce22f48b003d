package kubernetes

import (
	"fmt"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers/train/launch"
)

// mixed says which pods of a run have another image than the rest under the same
// name, which has moved since those began; "" is none. A reference with a digest
// cannot move, and containers that a webhook adds have images of their own.
func (s *sight) mixed(p launch.Placement) string {
	if strings.Contains(p.Image, "@") {
		return ""
	}
	of := make(map[string][]string) // roles by digest
	var order []string
	for _, pod := range byAge(s.pods) {
		for _, c := range pod.Status.ContainerStatuses {
			digest := digestOf(c.ImageID)
			if c.Name != "trainer" || c.State.Running == nil || pod.DeletionTimestamp != nil || digest == "" {
				continue
			}
			if of[digest] == nil {
				order = append(order, digest)
			}
			of[digest] = append(of[digest], roleName(&pod))
		}
	}
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
	case pulls(p) && p.Durable() && !state.Fleeting:
		state.Renew = why
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
