package gke

import (
	"flag"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/stokehq/stoke/providers/reference"
)

var update = flag.Bool("update", false, "rewrite the reference pages")

// TestReference: the pages of docs/reference are what the schemas say. With
// -update it writes them.
func TestReference(t *testing.T) {
	reference.Check(t, providerserver.NewProtocol6(New("test"))(), "gke", "../../docs", "google-cloud.md", *update)
}
