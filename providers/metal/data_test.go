package metal

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/ssh"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
	"github.com/stokehq/stoke/providers/metal/nvidia"
	"github.com/stokehq/stoke/runtime/gpu"
)

// answering is the provider, logged in by a key, and a server that takes it.
func answering(t *testing.T, c sshtest.Config) (providers.Provider, *sshtest.Server) {
	t.Helper()
	ctx := context.Background()
	signer, private := sshtest.NewKey(t)
	c.Authorized = []ssh.PublicKey{signer.PublicKey()}
	s := sshtest.New(t, c)
	p, err := Entry("test").New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	schema, diags := p.Schema(ctx)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	block := fillObject(schema.Provider.ImpliedType(), map[string]cty.Value{
		"ssh": fillObject(schema.Provider.ImpliedType().AttributeType("ssh"), map[string]cty.Value{
			"user": cty.StringVal(sshtest.User), "private_key": cty.StringVal(sshtest.PEM(t, private, "")), "retry_timeout": cty.StringVal("0s"),
		}),
	})
	if diags := p.Configure(ctx, block); diags.HasErrors() {
		t.Fatal(diags)
	}
	return p, s
}

// fillObject is an object of a type, null where nothing is given.
func fillObject(t cty.Type, given map[string]cty.Value) cty.Value {
	object := map[string]cty.Value{}
	for name, at := range t.AttributeTypes() {
		v, ok := given[name]
		if !ok {
			v = cty.NullVal(at)
		}
		object[name] = v
	}
	return cty.ObjectVal(object)
}

func readData(t *testing.T, p providers.Provider, typeName string, given map[string]cty.Value) (cty.Value, providers.Diagnostics) {
	t.Helper()
	schema, _ := p.Schema(context.Background())
	config := fillObject(schema.Data[typeName].Block.ImpliedType(), given)
	if diags := p.ValidateData(context.Background(), typeName, config); diags.HasErrors() {
		return cty.NilVal, diags
	}
	resp := p.ReadData(context.Background(), providers.ReadDataRequest{Type: typeName, Config: config, Meta: cty.NullVal(cty.DynamicPseudoType)})
	return resp.State, resp.Diagnostics
}

func wayTo(t *testing.T, p providers.Provider, s *sshtest.Server, key string) cty.Value {
	t.Helper()
	schema, _ := p.Schema(context.Background())
	address, port := s.Address()
	return fillObject(schema.Data["metal_host_facts"].Block.ImpliedType().AttributeType("host"), map[string]cty.Value{
		"address": cty.StringVal(address), "port": cty.NumberIntVal(int64(port)), "host_key": cty.StringVal(key),
	})
}

func TestHostFacts(t *testing.T) {
	p, s := answering(t, sshtest.Config{Profile: "Welcome to the machine"})
	state, diags := readData(t, p, "metal_host_facts", map[string]cty.Value{"host": wayTo(t, p, s, s.HostKey())})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	name, err := os.Hostname()
	if err != nil || state.GetAttr("hostname").AsString() != name {
		t.Errorf("the host name is %#v, not %s", state.GetAttr("hostname"), name)
	}
	if n, _ := state.GetAttr("memory").AsBigFloat().Int64(); n < 1<<20 {
		t.Errorf("memory: %d", n)
	}
	if v := state.GetAttr("gpu_health"); v.IsNull() || v.LengthInt() != 0 {
		t.Errorf("health of GPUs that the machine does not have: %#v", v)
	}
	if v := state.GetAttr("unread"); v.LengthInt() != 0 {
		t.Errorf("not understood: %#v", v)
	}

	other, _ := sshtest.NewKey(t)
	if _, diags := readData(t, p, "metal_host_facts", map[string]cty.Value{"host": wayTo(t, p, s, sshtest.Line(other.PublicKey()))}); !diags.HasErrors() || diags[0].Summary != "Host key does not match" {
		t.Errorf("another machine's key: %v", diags)
	}
	s.Close()
	p2, _ := answering(t, sshtest.Config{})
	if _, diags := readData(t, p2, "metal_host_facts", map[string]cty.Value{"host": wayTo(t, p2, s, s.HostKey())}); !diags.HasErrors() {
		t.Error("a machine that is down has facts")
	}
}

// Each GPU has its verdict, by the rules that runs have; a machine that cannot be asked
// has none, with a warning.
func TestHealthOfEachGPU(t *testing.T) {
	text, err := os.ReadFile("../../runtime/gpu/testdata/smi.xml")
	if err != nil {
		t.Fatal(err)
	}
	lineOf := func(text string) string { return "health\t" + base64.StdEncoding.EncodeToString([]byte(text)) + "\n" }
	line := lineOf(string(text))
	var fails error
	m := &hosttest.Machine{Answer: func(host.Command) (hosttest.Answer, bool) {
		return hosttest.Answer{Stdout: "loaded\n" + line + "end\n", Err: fails}, true
	}}
	with := facts.Facts{NVIDIADriver: "580.65.06"}
	list, diags := gpuHealth(t.Context(), m, with)
	var all []gpuVerdict
	if diags.Append(list.ElementsAs(t.Context(), &all, false)...); diags.HasError() || len(all) < 2 {
		t.Fatalf("%v %v", all, diags)
	}
	if g := all[1]; g.Index != 1 || g.Verdict != "unfit" || !strings.Contains(g.Reasons, "ECC could not correct") || g.UUID == "" || g.Name == "" {
		t.Errorf("%+v", g)
	}
	if g := all[0]; g.Index != 0 || g.Verdict == "unfit" {
		t.Errorf("%+v", g)
	}
	for line, want := range map[string]string{
		"":         "is missing, or does not answer within 30 s", // no line: nvidia-smi is missing
		lineOf(""): "is missing, or does not answer within 30 s",
		lineOf("NVIDIA-SMI has failed because it\ncouldn't communicate"): "has failed because it couldn't communicate",
	} {
		m := &hosttest.Machine{Answer: func(host.Command) (hosttest.Answer, bool) {
			return hosttest.Answer{Stdout: "loaded\n" + line + "end\n"}, true
		}}
		if list, diags := gpuHealth(t.Context(), m, with); !list.IsNull() || diags.HasError() || len(diags) != 1 || !strings.Contains(diags[0].Detail(), want) {
			t.Errorf("%q: %v %v", line, list, diags)
		}
		if err := (&nodeLook{on: m}).judgeGPUs(t.Context()); err != nil {
			t.Errorf("%q: a node is judged: %v", line, err)
		}
	}
	fails = errors.New("the connection broke")
	if list, diags := gpuHealth(t.Context(), m, with); !list.IsNull() || diags.HasError() || len(diags) != 1 || !strings.Contains(diags[0].Detail(), "the connection broke") {
		t.Errorf("%v %v", list, diags)
	}
	if list, diags := gpuHealth(t.Context(), m, facts.Facts{}); list.IsNull() || len(list.Elements()) != 0 || len(diags) > 0 {
		t.Errorf("%v %v", list, diags)
	}
}

// A driver without changes is no reason to hide an unfit GPU: the refresh warns. A plan
// warns only where no refresh has.
func TestRefreshWarnsOfUnfitGPUs(t *testing.T) {
	have := nvidia.State{Health: gpu.Judge(gpu.Snapshot{GPUs: []gpu.Reading{
		{Index: 0, Values: map[string]float64{gpu.RemapPending: 1}}, {Index: 1, Fault: gpu.FaultLost},
	}}, gpu.Expectation{})}
	s, m := new(settings), &hosttest.Machine{}
	for i, c := range []struct{ isRefresh, warns bool }{{true, true}, {false, false}, {false, true}} {
		var diags diag.Diagnostics
		s.warnUnfit(m, have, c.isRefresh, &diags)
		if diags.HasError() || len(diags) > 1 || (len(diags) == 1) != c.warns ||
			c.warns && !strings.Contains(diags[0].Detail(), "GPU 1: it has fallen off the bus (rule lost)") {
			t.Errorf("%d: %v", i, diags)
		}
	}
}

func TestHostFactsWithoutSudo(t *testing.T) {
	for _, kind := range []sshtest.Sudo{sshtest.SudoUnlisted, sshtest.SudoAbsent, sshtest.SudoTTY} {
		p, s := answering(t, sshtest.Config{Sudo: kind})
		state, diags := readData(t, p, "metal_host_facts", map[string]cty.Value{"host": wayTo(t, p, s, s.HostKey())})
		if diags.HasErrors() {
			t.Errorf("%v: %v", kind, diags)
			continue
		}
		sudo := state.GetAttr("sudo")
		if sudo.GetAttr("works").True() || sudo.GetAttr("error").AsString() == "" {
			t.Errorf("%v: %#v", kind, sudo)
		}
	}
}

func TestKnownHost(t *testing.T) {
	p, s := answering(t, sshtest.Config{})
	address, port := s.Address()
	at := map[string]cty.Value{"address": cty.StringVal(address), "port": cty.NumberIntVal(int64(port))}
	check := func(what, source string, given map[string]cty.Value) {
		t.Helper()
		state, diags := readData(t, p, "metal_known_host", given)
		if diags.HasErrors() {
			t.Errorf("%s: %v", what, diags)
			return
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.HostKey()))
		if err != nil {
			t.Fatal(err)
		}
		if state.GetAttr("host_key").AsString() != s.HostKey() || state.GetAttr("fingerprint").AsString() != ssh.FingerprintSHA256(key) || state.GetAttr("source").AsString() != source {
			t.Errorf("%s: %#v", what, state)
		}
	}
	check("asked", "connection", at)
	if s.Logins() != 0 {
		t.Errorf("%d logins, and none was needed", s.Logins())
	}

	file := filepath.Join(t.TempDir(), "known_hosts")
	line := "[" + address + "]:" + strconv.Itoa(port) + " " + s.HostKey() + "\n"
	if err := os.WriteFile(file, []byte("# nothing\n"+line), 0o600); err != nil {
		t.Fatal(err)
	}
	check("from a file", file+":2", map[string]cty.Value{"address": at["address"], "port": at["port"], "known_hosts_file": cty.StringVal(file)})
	if _, diags := readData(t, p, "metal_known_host", map[string]cty.Value{"address": cty.StringVal("other.example"), "known_hosts_file": cty.StringVal(file)}); !diags.HasErrors() {
		t.Error("a machine that is not in the file is asked")
	}

	schema, _ := p.Schema(context.Background())
	hop := schema.Data["metal_known_host"].Block.ImpliedType().AttributeType("hops").ElementType()
	through := func(key string) map[string]cty.Value {
		return map[string]cty.Value{"address": at["address"], "port": at["port"], "hops": cty.ListVal([]cty.Value{
			fillObject(hop, map[string]cty.Value{"address": at["address"], "port": at["port"], "host_key": cty.StringVal(key)}),
		})}
	}
	check("through a bastion, which is itself", "connection", through(s.HostKey()))
	if s.Logins() != 1 {
		t.Errorf("%d logins on the bastion", s.Logins())
	}
	other, _ := sshtest.NewKey(t)
	if _, diags := readData(t, p, "metal_known_host", through(sshtest.Line(other.PublicKey()))); !diags.HasErrors() {
		t.Error("a bastion with another key is gone through")
	}
	if _, diags := readData(t, p, "metal_known_host", map[string]cty.Value{"address": cty.StringVal("-oProxyCommand=x y")}); !diags.HasErrors() {
		t.Error("any address is taken")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	n, _ := strconv.Atoi(text)
	if _, diags := readData(t, p, "metal_known_host", map[string]cty.Value{"address": cty.StringVal("127.0.0.1"), "port": cty.NumberIntVal(int64(n))}); !diags.HasErrors() || !strings.Contains(diags[0].Detail, "refused") {
		t.Errorf("a machine that is down: %v", diags)
	}
}
