package packages

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func wanted() Spec {
	return Spec{
		Owner: "host",
		Proxy: &Proxy{HTTP: "http://proxy.example.org:3128", Direct: []string{"mirror.example.org", ".corp.example.org", "10.0.0.0/8"}},
		Repositories: map[string]Repository{
			"kubernetes": {URIs: []string{"https://pkgs.k8s.io/core:/stable:/v1.36/deb/"}, Suites: []string{"/"}, Key: Key{URL: "http://keys.corp.example.org/k8s.asc"}, Fingerprints: []string{printEd25519}},
			"docker":     {URIs: []string{"http://10.1.2.3/docker"}, Suites: []string{"bookworm"}, Components: []string{"stable"}, Architectures: []string{"amd64"}, Key: Key{Inline: "x"}, Fingerprints: []string{printRSA}},
		},
		Packages: map[string]Package{
			"kubelet": {Version: "1.36.3-*", Hold: true}, "jq": {}, "libstdc++6": {Version: "12.2.0-14", Exclude: true},
		},
		Absent: []string{"docker.io"},
		Pinned: map[string]string{"*nvidia*": "580.126.20-*"},
	}
}

func TestSettings(t *testing.T) {
	s := wanted()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"/etc/apt/sources.list.d/stoke-kubernetes.sources": `# Written by stoke; destroying all that declares it removes it.
Types: deb
URIs: https://pkgs.k8s.io/core:/stable:/v1.36/deb/
Suites: /
Signed-By: /etc/apt/keyrings/stoke-kubernetes.gpg
`,
		"/etc/apt/sources.list.d/stoke-docker.sources": `# Written by stoke; destroying all that declares it removes it.
Types: deb
URIs: http://10.1.2.3/docker
Suites: bookworm
Components: stable
Architectures: amd64
Signed-By: /etc/apt/keyrings/stoke-docker.gpg
`,
		"/etc/apt/preferences.d/stoke-host.pref": `Explanation: Written by stoke for host; destroying that removes it.
Package: *nvidia*
Pin: version 580.126.20-*
Pin-Priority: 995

Package: kubelet
Pin: version 1.36.3-*
Pin-Priority: 995

Package: libstdc++6
Pin: version 12.2.0-14
Pin-Priority: 995
`,
		"/etc/apt/apt.conf.d/95stoke-host-exclude": `// Written by stoke for host; destroying that removes it.
Unattended-Upgrade::Package-Blacklist {
  "libstdc\+\+6$";
};
`,
		"/etc/apt/apt.conf.d/95stoke-host-proxy": `// Written by stoke for host; destroying that removes it.
Acquire::http::Proxy "http://proxy.example.org:3128";
Acquire::http::Proxy::10.1.2.3 "DIRECT";
Acquire::http::Proxy::keys.corp.example.org "DIRECT";
Acquire::http::Proxy::mirror.example.org "DIRECT";
`,
	}
	if diff := cmp.Diff(want, s.settings()); diff != "" {
		t.Error(diff)
	}
	for name, content := range (Spec{Owner: "x"}).settings() {
		if content != "" {
			t.Errorf("%s of nothing is %q", name, content)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		change func(*Spec)
		says   string
	}{
		{func(s *Spec) { s.Owner = "a/b" }, "owner"},
		{func(s *Spec) { s.Packages["-oDir::Etc=x"] = Package{} }, "not a name of a Debian package"},
		{func(s *Spec) { s.Packages["a b"] = Package{} }, "not a name of a Debian package"},
		{func(s *Spec) { s.Packages["kubelet"] = Package{Version: "1.36 || true"} }, "neither a version nor a pattern"},
		{func(s *Spec) { s.Absent = []string{"kubelet"} }, "to be there and to be absent"},
		{func(s *Spec) { s.Pinned["* libc6"] = "1" }, "pattern of names"},
		{func(s *Spec) { s.Pinned["*nvidia*"] = "1\nPackage: *" }, "pattern of names"},
		{func(s *Spec) { s.Allow = []string{"*"} }, "not a name of a Debian package"},
		{func(s *Spec) { s.Proxy.HTTP = "http://u:secret@proxy:1" }, "auth.conf.d"},
		{func(s *Spec) { s.Proxy.HTTP = `http://p:1";DPkg::Pre-Invoke {"x` }, "must be a URL"},
		{func(s *Spec) { s.Proxy.Direct = []string{`x";`} }, "is not a host"},
		{func(s *Spec) { s.edit("docker", func(r *Repository) { r.Fingerprints = nil }) }, "fingerprint of its key is required"},
		{func(s *Spec) { s.edit("docker", func(r *Repository) { r.Fingerprints = []string{"BD3756CC"} }) }, "not a key id"},
		{func(s *Spec) { s.edit("docker", func(r *Repository) { r.Key = Key{} }) }, "either a URL or armored text"},
		{func(s *Spec) { s.edit("docker", func(r *Repository) { r.Key.URL = "http://x/y" }) }, "either a URL or armored text"},
		{func(s *Spec) { s.edit("docker", func(r *Repository) { r.Components = nil }) }, "needs components"},
		{func(s *Spec) { s.edit("kubernetes", func(r *Repository) { r.Components = []string{"main"} }) }, "has no components"},
		{func(s *Spec) { s.edit("docker", func(r *Repository) { r.URIs = []string{"http://x/\nTrusted: yes"} }) }, "cannot be read"},
		{func(s *Spec) { s.edit("docker", func(r *Repository) { r.URIs = []string{"http://u:secret@x/"} }) }, "auth.conf.d"},
		{func(s *Spec) { s.edit("docker", func(r *Repository) { r.URIs = []string{"ftp://x/"} }) }, "want http, https or file"},
		{func(s *Spec) { s.edit("docker", func(r *Repository) { r.Suites = []string{"bookworm\nTrusted: yes"} }) }, "suite"},
	} {
		s := wanted()
		c.change(&s)
		err := s.Validate()
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("want %q: %v", c.says, err)
		}
	}
}

func (s *Spec) edit(name string, change func(*Repository)) {
	r := s.Repositories[name]
	change(&r)
	s.Repositories[name] = r
}

func TestMerge(t *testing.T) {
	docker := Repository{URIs: []string{"http://d"}, Suites: []string{"/"}, Why: "runtime"}
	other := docker
	other.URIs, other.Why = []string{"http://e"}, "people"
	got, err := Merge(
		Spec{Owner: "host", Packages: map[string]Package{"containerd.io": {Version: "2.2.*", Why: "runtime"}}, Repositories: map[string]Repository{"docker": docker}},
		Spec{Owner: "host", Packages: map[string]Package{"containerd.io": {Hold: true, Why: "people"}, "jq": {}}, Absent: []string{"docker.io"}, Repositories: map[string]Repository{"docker": docker}},
	)
	want := Spec{Owner: "host", Packages: map[string]Package{"containerd.io": {Version: "2.2.*", Hold: true, Why: "runtime, people"}, "jq": {}},
		Repositories: map[string]Repository{"docker": docker}, Absent: []string{"docker.io"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	_, err = Merge(
		Spec{Owner: "host", Packages: map[string]Package{"a": {Version: "1", Why: "runtime"}, "b": {}}, Repositories: map[string]Repository{"docker": docker}},
		Spec{Owner: "host", Packages: map[string]Package{"a": {Version: "2"}}, Absent: []string{"b"}, Repositories: map[string]Repository{"docker": other}},
		Spec{Owner: "gpu-driver"},
	)
	for _, says := range []string{"a is wanted in version 1 by runtime and in 2 by the configuration", "docker is declared differently by runtime and people", "b is declared absent", "cannot be one"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q: %v", says, err)
		}
	}
}

func TestJudge(t *testing.T) {
	simulated := func(name string) []Action {
		actions, err := parseSimulation(testdata(t, name))
		if err != nil {
			t.Fatal(err)
		}
		return actions
	}
	declare := func(absent, allow []string, packages ...string) Spec {
		s := Spec{Owner: "host", Absent: absent, Allow: allow}
		for _, p := range packages {
			name, version, _ := strings.Cut(p, "=")
			put(&s.Packages, name, Package{Version: version})
		}
		return s
	}
	for _, c := range []struct {
		name, file string
		spec       Spec
		says       string
	}{
		{"Docker's containerd.io removes docker.io", "simrm.txt", declare(nil, nil, "containerd.io=2.2.*"),
			"apt would also remove docker.io 20.10.24+dfsg1-1+deb12u1+b6, remove containerd 1.6.20~ds1-1+deb12u3, which is not declared"},
		{"declared absent", "simrm.txt", declare([]string{"docker.io", "containerd"}, nil, "containerd.io=2.2.*"), ""},
		{"allowed", "simrm.txt", declare([]string{"containerd"}, []string{"docker.io"}, "containerd.io=2.2.*"), ""},
		{"a dependency is upgraded", "simupg.txt", declare(nil, nil, "kubelet=1.37.*"), "upgrade kubernetes-cni 1.6.0-1.1 → 2.0.0-1.1"},
		{"a dependency is downgraded", "simdown.txt", declare(nil, nil, "kubelet=1.36.*"), "downgrade kubernetes-cni 2.0.0-1.1 → 1.6.0-1.1"},
		{"all is declared", "simupg.txt", declare(nil, nil, "kubelet=1.37.*", "kubernetes-cni"), ""},
		{"declared otherwise", "simupg.txt", declare(nil, nil, "kubelet=1.37.*", "kubernetes-cni=1.*"), "apt would upgrade kubernetes-cni 1.6.0-1.1 → 2.0.0-1.1, but 1.* is declared"},
		{"a declared one would go", "simpurge.txt", declare([]string{"libjq1"}, []string{"jq"}, "jq"), "which is declared"},
		{"dependencies come in", "simmulti.txt", declare([]string{"systemd-timesyncd"}, nil, "chrony"), ""},
		{"a time service ousts another", "simmulti.txt", declare(nil, nil, "chrony"), "apt would also remove systemd-timesyncd 252.39-1~deb12u2"},
		{"an absent one would come in", "simmulti.txt", declare([]string{"rpcbind"}, nil, "nfs-common"), "install rpcbind 1.2.6-6+b1, which is declared absent"},
	} {
		got := strings.Join(c.spec.judge(simulated(c.file)), "; ")
		if c.says == "" && got != "" || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", c.name, got, c.says)
		}
	}
}
