package kube

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// converted is a CRD whose objects are stored as v1, served as v1 and v2, and converted
// by a webhook.
func converted(w *world, url string, ca []byte) string {
	hook := fmt.Sprintf("  scope: Namespaced\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: %q, caBundle: %s}}}", url, base64.StdEncoding.EncodeToString(ca))
	return strings.Replace(crdOf(w, "Thing", version("v1", true, 0, "size")+version("v2", false, 0, "size")), "  scope: Namespaced", hook, 1)
}

// TestConversionWebhookThatComesLater: an object whose conversion webhook does not run
// yet is applied when the webhook runs. While the webhook does not run, the other objects
// of the manifest are planned and changed, and the plan says what it could not read.
func TestConversionWebhookThatComesLater(t *testing.T) {
	w := newWorld(t)
	url, ca, start, stop := w.cluster.ConversionWebhook(t)
	of := func(size, value string) cty.Value { // without a replacement of NS, which may be in the certificate
		text := converted(w, url, ca) + custom(w, "Thing", "v2", "size: "+size) + configMap1("beside", value)
		return w.conf("kube_manifest", map[string]cty.Value{"yaml": cty.StringVal(text), "namespace": cty.StringVal(w.ns), "prune_data": cty.True})
	}
	config := of("1", "1")
	pl := w.plan(thing{}, config)
	if pl.said().HasErrors() {
		t.Fatal(pl.said())
	}
	waits := make(chan struct{}, 100)
	go func() { // it comes up once the apply was refused
		<-waits
		start()
	}()
	ctx := providers.WithCall(t.Context(), &providers.Call{Operation: "op-" + w.ns, Address: pl.prior.address(), Progress: func(p providers.Progress) {
		if strings.Contains(p.Step, "a webhook does not answer") {
			select {
			case waits <- struct{}{}:
			default:
			}
		}
	}})
	r := w.phase().Apply(ctx, providers.ApplyRequest{Type: pl.kind, Prior: pl.prior.state, Planned: pl.Planned, Config: pl.config, Private: pl.Private})
	if r.Diagnostics.HasErrors() {
		t.Fatal(r.Diagnostics)
	}
	it := w.empty(thing{kind: pl.kind, state: r.State, private: r.Private}, config)
	// Lists may come from the API server's cache of the version, a single object does not.
	w.kubectl("label", "things.v1."+w.ns+".example.com", "a", "stoke.dev/managed-")
	stop()
	asked := providers.WithCall(t.Context(), &providers.Call{Address: it.address()})
	read := w.phase().Read(asked, providers.ReadRequest{Type: it.kind, State: it.state, Private: it.private})
	if read.Diagnostics.HasErrors() || len(read.Diagnostics) != 1 || !strings.Contains(read.Diagnostics[0].Detail, "The object is taken to be as the state has it") {
		t.Fatal(read.Diagnostics)
	}
	it = thing{kind: it.kind, state: read.State, private: read.Private}
	if pl := w.plan(it, config); pl.said().HasErrors() || !pl.noop() {
		t.Errorf("a plan with nothing to do: %v %v", pl.said(), pl.notes)
	}
	config = of("1", "2")
	it = w.make(it, config)
	if got := w.field("configmap/beside", ".data.a"); got != "2" {
		t.Errorf("the other object is %q", got)
	}
	config = of("2", "2")
	pl = w.plan(it, config)
	if notes := strings.Join(pl.notes, "\n"); pl.said().HasErrors() || pl.noop() || !strings.Contains(notes, "Thing "+w.ns+"/a is checked at apply: a webhook of the cluster does not answer") {
		t.Fatal(pl.said(), notes)
	}
	says(t, w.destroys(it).Diagnostics, "A webhook does not answer", "conversion webhook")
	start()
	it = w.empty(w.make(w.refresh(it), config), config)
	w.destroy(it)
}
