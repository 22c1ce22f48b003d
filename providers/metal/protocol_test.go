package metal

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/ssh"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

const adminPassword = "a password"

// overProtocol is the provider as an engine drives it, and machines that it logs in
// on: gate, which takes the provider's key, and m, which takes the password of the
// credential admin alone and gives its commands to a tree.
type overProtocol struct {
	*testing.T
	p       providers.Provider
	schema  *providers.Schema
	tree    *hosttest.Tree
	gate, m *sshtest.Server
	fails   atomic.Value // the beginning of scripts that do; "" for none
	passing atomic.Int64 // commands until the one that fails; negative for none
}

func newOverProtocol(t *testing.T) *overProtocol {
	t.Helper()
	o := &overProtocol{T: t, tree: hosttest.NewTree(t)}
	o.fails.Store("")
	o.passing.Store(-1)
	o.tree.Sh(`echo "99.0 1.0" >/proc/uptime; : >/etc/fstab; mkdir -p /proc/sys/kernel/random /proc/1 /run/systemd/system; echo "nameserver 192.0.2.53" >/etc/resolv.conf; echo systemd >/proc/1/comm; echo "MemTotal: 4000000 kB" >/proc/meminfo; echo boot >/proc/sys/kernel/random/boot_id; echo 01234567-89ab-cdef-0123-456789abcdef >/proc/sys/kernel/random/uuid
		printf 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n' >/etc/os-release`)
	for name, says := range map[string]string{"nproc": "1", "dpkg": "amd64", "dpkg-query": "''", "apt-mark": "''", "apt-config": "''", "apt-cache": "''", "apt-get": "''", "ss": "''", "ip": "''", "date": "$(/bin/date +%s.%N)"} {
		if err := os.WriteFile(filepath.Join(o.tree.Root, "bin", name), []byte("#!/bin/sh\nprintf %s "+says+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(asked sshtest.Asked) (string, int) {
		in, err := io.ReadAll(asked.Stdin)
		if err != nil {
			return err.Error(), 1
		}
		if len(asked.Args) == 2 && asked.Args[1] == "-s" { // a script by standard input, whose paths are the tree's, too
			asked.Args, in = []string{"sh", "-c", "# facts\n" + string(in)}, nil
		}
		if is := o.fails.Load(); is != "" && strings.HasPrefix(asked.Args[min(2, len(asked.Args)-1)], is.(string)) {
			return "", 1
		}
		name, _, _ := strings.Cut(asked.Args[min(2, len(asked.Args)-1)], "\n")
		if !strings.Contains(name, "lock") && o.passing.Load() >= 0 && o.passing.Add(-1) < 0 { // a lock that is not given back is waited for
			return "", 1
		}
		out, err := o.tree.Run(context.Background(), host.Command{Args: asked.Args, Stdin: in})
		if err != nil {
			return string(out.Stdout), 1
		}
		return string(out.Stdout), 0
	}
	o.m = sshtest.New(t, sshtest.Config{Password: adminPassword, SudoPassword: adminPassword, Answer: answer})
	signer, private := sshtest.NewKey(t)
	o.gate = sshtest.New(t, sshtest.Config{Authorized: []ssh.PublicKey{signer.PublicKey()}})
	p, err := Entry("test").New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	schema, diags := p.Schema(t.Context())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	o.p, o.schema = p, schema
	block := schema.Provider.ImpliedType()
	credentials := block.AttributeType("ssh").AttributeType("credentials")
	if diags := p.Configure(t.Context(), fillObject(block, map[string]cty.Value{
		"ssh": fillObject(block.AttributeType("ssh"), map[string]cty.Value{
			"user": cty.StringVal(sshtest.User), "private_key": cty.StringVal(sshtest.PEM(t, private, "")), "retry_timeout": cty.StringVal("0s"),
			"credentials": cty.MapVal(map[string]cty.Value{"admin": fillObject(credentials.ElementType(), map[string]cty.Value{
				"user": cty.StringVal(sshtest.User), "password": cty.StringVal(adminPassword), "sudo_password": cty.StringVal(adminPassword),
			})}),
		}),
	})); diags.HasErrors() {
		t.Fatal(diags)
	}
	return o
}

func (o *overProtocol) hop(s *sshtest.Server) connect.Hop {
	address, port := s.Address()
	return connect.Hop{Address: address, Port: port, HostKey: s.HostKey()}
}

// way is the one to m: by gate, with the credential admin.
func (o *overProtocol) way() connect.SSH {
	way := connect.SSH{Hop: o.hop(o.m), Hops: []connect.Hop{o.hop(o.gate)}}
	way.Credential = "admin"
	return way
}

// imports is what an import takes over, as it is read, and what was said.
func (o *overProtocol) imports(kind, id string) (cty.Value, providers.Diagnostics) {
	o.Helper()
	got := o.p.Import(o.Context(), providers.ImportRequest{Type: kind, ID: id})
	if got.Diagnostics.HasErrors() {
		return cty.NilVal, got.Diagnostics
	}
	read := o.p.Read(o.Context(), providers.ReadRequest{Type: kind, State: got.Objects[0].State, Private: got.Objects[0].Private, Meta: cty.NullVal(cty.DynamicPseudoType)})
	return read.State, read.Diagnostics
}

// TestImports: what a plan names leads to the machine, whoever has to lead there
// and let in; and what was not looked at is not taken over.
func TestImports(t *testing.T) {
	o := newOverProtocol(t)
	for _, kind := range []string{"metal_host", "metal_firewall"} {
		before := o.gate.Logins()
		state, diags := o.imports(kind, importID(o.way()))
		if diags.HasErrors() || state == cty.NilVal {
			t.Fatalf("%s: %v", kind, diags)
		}
		if id := state.GetAttr("id").AsString(); id != imported || len(diags) > 0 {
			t.Errorf("%s: id %s, %v", kind, id, diags)
		}
		if before == 0 && o.gate.Logins() != 1 {
			t.Errorf("%s: %d logins on the bastion", kind, o.gate.Logins())
		}
		if kind == "metal_host" {
			if bastions := state.GetAttr("bastion"); state.GetAttr("credential").AsString() != "admin" || bastions.LengthInt() != 1 || state.GetAttr("facts").IsNull() {
				t.Errorf("taken over is %#v", state)
			}
		}
		plain := connect.SSH{Hop: o.hop(o.m)}
		_, diags = o.imports(kind, importID(plain))
		if !diags.HasErrors() || !strings.Contains(diags[0].Summary, "cannot be imported") || !strings.Contains(diags[0].Detail, `"credential": "admin"`) {
			t.Errorf("%s that nobody could log in on: %v", kind, diags)
		}
	}
	for _, id := range []string{`{`, `{"address": "a"}`, `{"address": "a", "host_key": "b", "bastion": []}`} {
		if _, diags := o.imports("metal_host", id); !diags.HasErrors() || diags[0].Summary != "Invalid import identifier" {
			t.Errorf("%s: %v", id, diags)
		}
	}
}

// given are attributes beside those of the way to m.
func (o *overProtocol) given(more map[string]cty.Value) map[string]cty.Value {
	at, given := o.hop(o.m), maps.Clone(more)
	given["address"], given["port"], given["host_key"], given["credential"] = cty.StringVal(at.Address), cty.NumberIntVal(int64(at.Port)), cty.StringVal(at.HostKey), cty.StringVal("admin")
	return given
}

// plan plans as an engine does.
func (o *overProtocol) plan(kind string, prior cty.Value, private []byte, given map[string]cty.Value) (providers.PlanResponse, cty.Value) {
	o.Helper()
	block := o.schema.Resources[kind].Block
	ty := block.ImpliedType()
	given = maps.Clone(given)
	for name := range block.Blocks {
		given[name] = cty.ListValEmpty(ty.AttributeType(name).ElementType())
	}
	config, proposed := fillObject(ty, given), map[string]cty.Value{}
	for name, v := range config.AsValueMap() {
		if a := block.Attributes[name]; a != nil && a.Computed && v.IsNull() && !prior.IsNull() {
			v = prior.GetAttr(name)
		}
		proposed[name] = v
	}
	resp := o.p.Plan(o.Context(), providers.PlanRequest{Type: kind, Prior: prior, Proposed: cty.ObjectVal(proposed), Config: config, Private: private, Meta: cty.NullVal(cty.DynamicPseudoType)})
	if resp.Diagnostics.HasErrors() {
		o.Fatal(resp.Diagnostics)
	}
	return resp, config
}

func (o *overProtocol) apply(ctx context.Context, prior cty.Value, private []byte, given map[string]cty.Value) providers.ApplyResponse {
	o.Helper()
	plan, config := o.plan("metal_host", prior, private, given)
	return o.p.Apply(ctx, providers.ApplyRequest{Type: "metal_host", Prior: prior, Planned: plan.Planned, Config: config, Private: plan.Private, Meta: cty.NullVal(cty.DynamicPseudoType)})
}

// TestNoNft: that nft is missing is what the review says, once, as it knows what
// the machine's metal_host installs.
func TestNoNft(t *testing.T) {
	o := newOverProtocol(t)
	ty := o.schema.Resources["metal_firewall"].Block.ImpliedType()
	resp, _ := o.plan("metal_firewall", cty.NullVal(ty), nil, map[string]cty.Value{
		"role": cty.StringVal("worker"), "peers": cty.SetVal([]cty.Value{cty.StringVal("192.0.2.1")}), "host": fillObject(ty.AttributeType("host"), o.given(map[string]cty.Value{})),
	})
	for _, d := range resp.Diagnostics {
		if d.Summary == "Program nft is missing" {
			t.Errorf("it is said before the review: %v", d)
		}
	}
	if lines := resp.Planned.GetAttr("rules"); !lines.IsKnown() {
		t.Errorf("the machine was not looked at: %#v", lines)
	}
}

// TestLeft: what is no longer declared and cannot be given back is said.
func TestLeft(t *testing.T) {
	o := newOverProtocol(t)
	o.tree.Sh(`echo "/swap none swap sw 0 0" >/etc/fstab; printf 'Filename Type Size Used Priority\n/swap file 1 0 -2\n' >/proc/swaps`)
	null := cty.NullVal(o.schema.Resources["metal_host"].Block.ImpliedType())
	made := o.apply(t.Context(), null, nil, o.given(map[string]cty.Value{"swap": cty.StringVal("off")}))
	if made.Diagnostics.HasErrors() {
		t.Fatal(made.Diagnostics)
	}
	if err := os.WriteFile(filepath.Join(o.tree.Root, "bin", "swapon"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var said []string
	ctx := providers.WithCall(t.Context(), &providers.Call{Progress: func(p providers.Progress) { said = append(said, p.Line) }})
	if done := o.apply(ctx, made.State, made.Private, o.given(map[string]cty.Value{})); done.Diagnostics.HasErrors() {
		t.Fatal(done.Diagnostics)
	}
	if want := "no longer declared, and left: swap: /swap can no longer be switched on"; !slices.Contains(said, want) {
		t.Errorf("%q is not among %q", want, said)
	}
}

// TestTakenBack: what an update did before it failed is planned to be given back
// where it is declared no more after that.
func TestTakenBack(t *testing.T) {
	o := newOverProtocol(t)
	o.tree.Sh(`echo "/swap none swap sw 0 0" >/etc/fstab; printf 'Filename Type Size Used Priority\n/swap file 1 0 -2\n' >/proc/swaps
		mkdir -p /usr/share/zoneinfo/Etc; touch /usr/share/zoneinfo/Etc/UTC /usr/share/zoneinfo/Etc/GMT; ln -s /usr/share/zoneinfo/Etc/UTC /etc/localtime; touch /etc/timezone`)
	null := cty.NullVal(o.schema.Resources["metal_host"].Block.ImpliedType())
	declared := o.given(map[string]cty.Value{"timezone": cty.StringVal("Etc/UTC")})
	made := o.apply(t.Context(), null, nil, declared)
	if made.Diagnostics.HasErrors() {
		t.Fatal(made.Diagnostics)
	}
	o.fails.Store("# set the time zone\n")
	failed := o.apply(t.Context(), made.State, made.Private, o.given(map[string]cty.Value{"timezone": cty.StringVal("Etc/GMT"), "swap": cty.StringVal("off")}))
	if is := o.tree.Sh("cat /proc/swaps"); !failed.Diagnostics.HasErrors() || strings.Contains(is, "/swap") {
		t.Fatalf("it did not fail once swap was off: %s", is)
	}
	o.fails.Store("")
	read := o.p.Read(t.Context(), providers.ReadRequest{Type: "metal_host", State: failed.State, Private: failed.Private, Meta: cty.NullVal(cty.DynamicPseudoType)})
	if plan, _ := o.plan("metal_host", read.State, read.Private, declared); plan.Planned.RawEquals(read.State) {
		t.Error("the plan is empty, and swap is off")
	}
	done := o.apply(t.Context(), read.State, read.Private, declared)
	if is := o.tree.Sh("cat /etc/fstab"); done.Diagnostics.HasErrors() || !strings.HasPrefix(is, "/swap none") {
		t.Errorf("swap is not given back: %s %v", is, done.Diagnostics)
	}
	if plan, _ := o.plan("metal_host", done.State, done.Private, declared); !plan.Planned.RawEquals(done.State) {
		t.Errorf("the plan after it is not empty: %#v", plan.Planned)
	}
}

// TestFailedUpdate: what an update that failed was to give back is planned again,
// also where it never began.
func TestFailedUpdate(t *testing.T) {
	null := cty.NullVal(newOverProtocol(t).schema.Resources["metal_host"].Block.ImpliedType())
	for name, script := range map[string]string{"while it is given back": "# turn swap on\n", "before it begins": "# lock the machine\n"} {
		t.Run(name, func(t *testing.T) {
			o := newOverProtocol(t)
			o.tree.Sh(`echo "/swap none swap sw 0 0" >/etc/fstab; printf 'Filename Type Size Used Priority\n/swap file 1 0 -2\n' >/proc/swaps`)
			swap := map[string]cty.Value{"swap": cty.StringVal("off"), "timezone": cty.StringVal("Etc/UTC")}
			o.tree.Sh(`mkdir -p /usr/share/zoneinfo/Etc; touch /usr/share/zoneinfo/Etc/UTC; ln -s /usr/share/zoneinfo/Etc/UTC /etc/localtime; touch /etc/timezone`)
			made := o.apply(t.Context(), null, nil, o.given(swap))
			if made.Diagnostics.HasErrors() {
				t.Fatal(made.Diagnostics)
			}
			delete(swap, "swap")
			o.fails.Store(script)
			failed := o.apply(t.Context(), made.State, made.Private, o.given(swap))
			if !failed.Diagnostics.HasErrors() {
				t.Fatalf("it did not fail: %s", o.tree.Sh("cat /etc/fstab /proc/swaps"))
			}
			o.fails.Store("")
			read := o.p.Read(t.Context(), providers.ReadRequest{Type: "metal_host", State: failed.State, Private: failed.Private, Meta: cty.NullVal(cty.DynamicPseudoType)})
			if len(read.Diagnostics) > 0 {
				t.Fatal(read.Diagnostics)
			}
			if again, _ := o.plan("metal_host", read.State, read.Private, o.given(swap)); again.Planned.RawEquals(read.State) {
				t.Error("the plan is empty, and swap is still off")
			}
			if done := o.apply(t.Context(), read.State, read.Private, o.given(swap)); done.Diagnostics.HasErrors() {
				t.Fatal(done.Diagnostics)
			}
			if is := o.tree.Sh("cat /etc/fstab"); !strings.HasPrefix(is, "/swap none") {
				t.Errorf("swap is not given back: %s", is)
			}
		})
	}
}
