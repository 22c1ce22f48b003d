package train

import (
	"testing"

	"github.com/stokehq/stoke/providers/train/launch"
)

// TestStray: a run whose checkpoints are to lie in another place would start over
// there, which no resume is to do.
func TestStray(t *testing.T) {
	bucket := func(place string) launch.Placement { return launch.Placement{Checkpoints: place} }
	log := func(size string) launch.Placement { return launch.Placement{Storage: size} }
	shared := func(place string, v ...launch.Volume) launch.Placement {
		return launch.Placement{Checkpoints: place, Volumes: v}
	}
	a, b := launch.Volume{Path: "/ckpt", Claim: "a"}, launch.Volume{Path: "/ckpt", Claim: "b"}
	both := launch.Placement{Checkpoints: "gs://lab/a", Storage: "1Gi"}
	image := bucket("gs://lab/a")
	image.Image = "trainer:2"
	for _, tt := range []struct {
		name    string
		was, is launch.Placement
		open    bool
		want    bool
	}{
		{name: "another image", was: bucket("gs://lab/a"), is: image},
		{name: "another bucket", was: bucket("gs://lab/a"), is: bucket("gs://lab/b"), want: true},
		{name: "out of a bucket", was: bucket("gs://lab/a"), is: log("1Gi"), want: true},
		{name: "out of a bucket to nowhere", was: bucket("gs://lab/a"), want: true},
		{name: "into a bucket", was: log("1Gi"), is: bucket("gs://lab/a"), want: true},
		{name: "into a bucket, which begins with nothing", is: bucket("gs://lab/a")},
		{name: "without the claim", was: log("1Gi"), want: true},
		{name: "with a larger claim", was: log("1Gi"), is: log("2Gi")},
		{name: "with the log on a claim, too", was: bucket("gs://lab/a"), is: both},
		{name: "without the log's claim", was: both, is: bucket("gs://lab/a")},
		{name: "another shared claim", was: shared("/ckpt/x", a), is: shared("/ckpt/x", b), want: true},
		{name: "perhaps another shared claim", was: shared("/ckpt/x", a), is: shared("/ckpt/x"), open: true},
		{name: "another volume beside it", was: shared("/ckpt/x", a), is: shared("/ckpt/x", a, launch.Volume{Path: "/data", Claim: "b"})},
		{name: "another volume over it", was: shared("/ckpt/x", a), is: shared("/ckpt/x", a, launch.Volume{Path: "/ckpt/x/", Claim: "b"}), want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := astray(tt.was, tt.is, !tt.open); got != tt.want {
				t.Errorf("astray: %t", got)
			}
		})
	}
}
