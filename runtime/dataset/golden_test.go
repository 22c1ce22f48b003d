package dataset

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stokehq/stoke/runtime/spec"
)

// The hashes and the manifests of the first formats stay as they are: runs and
// states hold them.
func TestHashesStay(t *testing.T) {
	table := []byte("label,a,b\n0,1,2\n1,3,4\n")
	for name, c := range map[string]struct {
		from spec.Origin
		want string
	}{
		"idx": {spec.Origin{Format: "idx", Path: folder(t, mnist())}, `{"format":"idx","train":{"records":6,"type":"u8","shape":[2,2],"classes":3,"hash":"sha256:e8995acd93297229d16127b88decf7bbdcc222a7f124496717be64ba390f9be4"},` +
			`"test":{"records":2,"type":"u8","shape":[2,2],"classes":3,"hash":"sha256:939a3ed1800ea6c1e179d07f41ef5e7af6c87b8aa2e43ac0fae8584000b5cd00"},` +
			`"hash":"sha256:e04d22d370a5d5e6b52ba12617c8d79bf99b4c173ff16ae9a713b1daa3735f35"}`},
		"csv": {spec.Origin{Format: "csv", Path: folder(t, map[string][]byte{"train.csv": table, "test.csv": table})}, `{"format":"csv","train":{"records":2,"type":"u8","shape":[2],"classes":2,"hash":"sha256:021a2f369fe8b0e8a2011a06903fd34d7bc769d5da6faef9c010696b9a907cc3"},` +
			`"test":{"records":2,"type":"u8","shape":[2],"classes":2,"hash":"sha256:021a2f369fe8b0e8a2011a06903fd34d7bc769d5da6faef9c010696b9a907cc3"},` +
			`"hash":"sha256:69e5522a57f30d4ba9f507347dc052bfd8cf3a8f950920920f200fb262c904b2"}`},
	} {
		m, err := Inspect(context.Background(), c.from)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != c.want {
			t.Errorf("%s: the manifest is\n%s\nwant\n%s", name, text, c.want)
		}
	}
}
