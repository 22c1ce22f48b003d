package run_test

import (
	"strings"
	"testing"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
)

const aliased = `
terraform {
  required_providers {
    shelf = {
      source                = "stokehq/shelf"
      configuration_aliases = [shelf.far]
    }
  }
}
`

// TestProviderConfigurations looks at which configuration objects are made
// with, by the prefix of their ids, and what the state says of it.
func TestProviderConfigurations(t *testing.T) {
	const two = "provider \"shelf\" { prefix = \"near\" }\nprovider \"shelf\" {\n  alias  = \"b\"\n  prefix = \"far\"\n}\n"
	both := aliased + thing("n", "") + thing("f", "provider = shelf.far")
	cases := []struct {
		name, root, child string
		want              map[string]string // address → prefix and provider address
	}{
		{
			name: "passed under another alias", child: both,
			root: two + "module \"m\" {\n  source = \"./m\"\n  count = 2\n  providers = { shelf.far = shelf.b }\n}\n",
			want: map[string]string{
				"module.m[0].shelf_thing.n": `near provider["registry.terraform.io/stokehq/shelf"]`,
				"module.m[1].shelf_thing.f": `far provider["registry.terraform.io/stokehq/shelf"].b`,
			},
		},
		{
			name: "another local name", child: "terraform {\n  required_providers {\n    other = { source = \"stokehq/shelf\" }\n  }\n}\n" + thing("n", "provider = other"),
			root: two + "module \"m\" { source = \"./m\" }\nmodule \"o\" {\n  source = \"./m\"\n  providers = { other = shelf.b }\n}\n",
			want: map[string]string{
				"module.m.shelf_thing.n": `near provider["registry.terraform.io/stokehq/shelf"]`,
				"module.o.shelf_thing.n": `far provider["registry.terraform.io/stokehq/shelf"].b`,
			},
		},
		{
			name: "an empty block gives way", child: "provider \"shelf\" {}\n" + thing("n", ""),
			root: two + "module \"m\" {\n  source = \"./m\"\n  providers = { shelf = shelf.b }\n}\n",
			want: map[string]string{"module.m.shelf_thing.n": `far provider["registry.terraform.io/stokehq/shelf"].b`},
		},
		{
			name: "a module's own", child: "provider \"shelf\" { prefix = \"own\" }\n" + thing("n", ""),
			root: two + "module \"m\" { source = \"./m\" }\n",
			want: map[string]string{"module.m.shelf_thing.n": `own module.m.provider["registry.terraform.io/stokehq/shelf"]`},
		},
		{
			name: "a module's own, empty, for all instances", child: "provider \"shelf\" {}\n" + thing("n", ""),
			root: "module \"m\" {\n  source = \"./m\"\n  for_each = toset([\"a\"])\n}\n",
			want: map[string]string{`module.m["a"].shelf_thing.n`: ` module.m.provider["registry.terraform.io/stokehq/shelf"]`},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf()
			w := newWorld(t, s.catalogue())
			w.must(w.config("main.tf", c.root, "m/main.tf", c.child))
			w.applied(plan.Normal)
			for text, want := range c.want {
				addr, err := address.ParseInstance(text)
				if err != nil {
					t.Fatal(err)
				}
				o := w.open().State().Current(addr)
				prefix, provider, _ := strings.Cut(want, " ")
				if o == nil || o.Provider != provider || !strings.Contains(string(o.JSON), `"id": "`+prefix) {
					t.Errorf("%s is not %s", addr, want)
				}
			}
			// The objects go the way they came, from the state alone.
			w.must(w.config("main.tf", c.root, "m/main.tf", c.child[:strings.Index(c.child, "resource ")]))
			w.applied(plan.Normal)
			if len(s.things) > 0 {
				t.Errorf("left: %v", s.things)
			}
		})
	}
}

func TestProviderMistakes(t *testing.T) {
	own := "provider \"shelf\" { prefix = \"own\" }\n"
	cases := []struct{ name, root, child, want string }{
		{"not passed", "module \"m\" { source = \"./m\" }\n", aliased, "Missing provider configuration"},
		{"not expected", "provider \"shelf\" { alias = \"b\" }\nmodule \"m\" {\n  source = \"./m\"\n  providers = { shelf.fra = shelf.b, shelf.far = shelf.b }\n}\n", aliased, `Did you mean "shelf.far"?`},
		{"over the module's own", "module \"m\" {\n  source = \"./m\"\n  providers = { shelf = shelf }\n}\n", own, "Provider configured in the module"},
		{"own and repeated", "module \"m\" {\n  source = \"./m\"\n  count = 1\n}\n", own, "Module with its own provider configuration"},
		{"own, further down, and waiting", "locals { x = 1 }\nmodule \"up\" {\n  source = \"./up\"\n  depends_on = [local.x]\n}\n", own, "Module with its own provider configuration"},
		{"another type", "terraform {\n  required_providers {\n    o = { source = \"other/shelf\" }\n  }\n}\nmodule \"m\" {\n  source = \"./m\"\n  providers = { shelf = o }\n}\n", thing("a", ""), "Provider type mismatch"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, newShelf().catalogue())
			diags := w.config("main.tf", c.root, "m/main.tf", c.child, "up/main.tf", "module \"m\" { source = \"../m\" }\n")
			if !diags.HasErrors() {
				_, diags = w.plan(plan.Normal)
			}
			if !diags.HasErrors() || !strings.Contains(text(diags), c.want) {
				t.Errorf("got\n%s\nwant something with\n%s", text(diags), c.want)
			}
		})
	}
}

// TestProviderGone takes provider blocks away while objects made with them
// are there.
func TestProviderGone(t *testing.T) {
	const far = "provider \"shelf\" {\n  alias = \"far\"\n  prefix = \"far\"\n}\n"
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", far+thing("a", "provider = shelf.far")+"module \"m\" { source = \"./m\" }\n", "m/main.tf", "provider \"shelf\" { prefix = \"own\" }\n"+thing("b", "")))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", ""))
	for _, mode := range []plan.Mode{plan.Normal, plan.Destroy} {
		_, diags := w.plan(mode)
		for _, want := range []string{`shelf_thing.a was made with the provider configuration provider["registry.terraform.io/stokehq/shelf"].far`, `module.m.provider["registry.terraform.io/stokehq/shelf"]`} {
			if !strings.Contains(text(diags), want) {
				t.Errorf("mode %d: planned with\n%s\nwant something with\n%s", mode, text(diags), want)
			}
		}
	}
	// They can be forgotten, which needs no configuration.
	w.must(w.config("main.tf", "removed {\n  from = shelf_thing.a\n  lifecycle { destroy = false }\n}\nremoved {\n  from = module.m\n  lifecycle { destroy = false }\n}\n"))
	w.applied(plan.Normal)
	if left := w.open().State().Instances(); len(left) > 0 || len(s.things) != 2 {
		t.Errorf("left in the state: %v; on the shelf: %v", left, s.things)
	}
}
