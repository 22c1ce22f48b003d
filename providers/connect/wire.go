package connect

// wire is a Connection with its nulls, named for both kinds of values.
type wire struct {
	ID         *string         `tfsdk:"id" cty:"id"`
	Endpoint   *string         `tfsdk:"endpoint" cty:"endpoint"`
	CA         *string         `tfsdk:"ca" cty:"ca"`
	Credential *wireCredential `tfsdk:"credential" cty:"credential"`
}

type wireCredential struct {
	Kubeconfig  *wireKubeconfig  `tfsdk:"kubeconfig" cty:"kubeconfig"`
	Exec        *wireExec        `tfsdk:"exec" cty:"exec"`
	Google      *wireGoogle      `tfsdk:"google" cty:"google"`
	SSH         *wireSSH         `tfsdk:"ssh" cty:"ssh"`
	Certificate *wireCertificate `tfsdk:"certificate" cty:"certificate"`
	TokenFile   *wireTokenFile   `tfsdk:"token_file" cty:"token_file"`
	InCluster   *wireInCluster   `tfsdk:"in_cluster" cty:"in_cluster"`
}

type wireCertificate struct {
	CertificateFile *string `tfsdk:"certificate_file" cty:"certificate_file"`
	KeyFile         *string `tfsdk:"key_file" cty:"key_file"`
}

type wireTokenFile struct {
	Path *string `tfsdk:"path" cty:"path"`
}

type wireInCluster struct{}

type wireKubeconfig struct {
	Path    *string `tfsdk:"path" cty:"path"`
	Context *string `tfsdk:"context" cty:"context"`
}

type wireExec struct {
	Command    *string  `tfsdk:"command" cty:"command"`
	Args       []string `tfsdk:"args" cty:"args"`
	APIVersion *string  `tfsdk:"api_version" cty:"api_version"`
}

type wireGoogle struct {
	CredentialsFile *string `tfsdk:"credentials_file" cty:"credentials_file"`
	Impersonate     *string `tfsdk:"impersonate_service_account" cty:"impersonate_service_account"`
}

type wireSSH struct {
	Address    *string    `tfsdk:"address" cty:"address"`
	Port       *int64     `tfsdk:"port" cty:"port"`
	User       *string    `tfsdk:"user" cty:"user"`
	HostKey    *string    `tfsdk:"host_key" cty:"host_key"`
	Credential *string    `tfsdk:"credential" cty:"credential"`
	Hops       []*wireHop `tfsdk:"hops" cty:"hops"` // nil for null
}

type wireHop struct {
	Address    *string `tfsdk:"address" cty:"address"`
	Port       *int64  `tfsdk:"port" cty:"port"`
	User       *string `tfsdk:"user" cty:"user"`
	HostKey    *string `tfsdk:"host_key" cty:"host_key"`
	Credential *string `tfsdk:"credential" cty:"credential"`
}

// text is what a pointer leads to, and "" for null.
func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// pointer is null for "".
func pointer(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func portPointer(n int) *int64 {
	if n == 0 {
		return nil
	}
	port := int64(n)
	return &port
}

func port(p *int64) int {
	if p == nil {
		return 0
	}
	return int(*p)
}

func (w wire) connection() Connection {
	c := Connection{ID: text(w.ID), Endpoint: text(w.Endpoint), CA: text(w.CA)}
	if w.Credential == nil {
		return c
	}
	if k := w.Credential.Kubeconfig; k != nil {
		c.Credential.Kubeconfig = &Kubeconfig{Path: text(k.Path), Context: text(k.Context)}
	}
	if e := w.Credential.Exec; e != nil {
		c.Credential.Exec = &Exec{Command: text(e.Command), Args: e.Args, APIVersion: text(e.APIVersion)}
	}
	if g := w.Credential.Google; g != nil {
		c.Credential.Google = &Google{CredentialsFile: text(g.CredentialsFile), Impersonate: text(g.Impersonate)}
	}
	if s := w.Credential.SSH; s != nil {
		ssh := s.ssh()
		c.Credential.SSH = &ssh
	}
	if k := w.Credential.Certificate; k != nil {
		c.Credential.Certificate = &Certificate{CertificateFile: text(k.CertificateFile), KeyFile: text(k.KeyFile)}
	}
	if f := w.Credential.TokenFile; f != nil {
		c.Credential.TokenFile = &TokenFile{Path: text(f.Path)}
	}
	if w.Credential.InCluster != nil {
		c.Credential.InCluster = &InCluster{}
	}
	return c
}

func wireOf(c Connection) wire {
	w := wire{ID: pointer(c.ID), Endpoint: pointer(c.Endpoint), CA: pointer(c.CA), Credential: &wireCredential{}}
	if k := c.Credential.Kubeconfig; k != nil {
		w.Credential.Kubeconfig = &wireKubeconfig{Path: pointer(k.Path), Context: pointer(k.Context)}
	}
	if e := c.Credential.Exec; e != nil {
		w.Credential.Exec = &wireExec{Command: pointer(e.Command), Args: e.Args, APIVersion: pointer(e.APIVersion)}
	}
	if g := c.Credential.Google; g != nil {
		w.Credential.Google = &wireGoogle{CredentialsFile: pointer(g.CredentialsFile), Impersonate: pointer(g.Impersonate)}
	}
	if s := c.Credential.SSH; s != nil {
		ssh := wireOfSSH(*s)
		w.Credential.SSH = &ssh
	}
	if k := c.Credential.Certificate; k != nil {
		w.Credential.Certificate = &wireCertificate{CertificateFile: pointer(k.CertificateFile), KeyFile: pointer(k.KeyFile)}
	}
	if f := c.Credential.TokenFile; f != nil {
		w.Credential.TokenFile = &wireTokenFile{Path: pointer(f.Path)}
	}
	if c.Credential.InCluster != nil {
		w.Credential.InCluster = &wireInCluster{}
	}
	return w
}

func (w wireSSH) ssh() SSH {
	s := SSH{Hop: wireHop{w.Address, w.Port, w.User, w.HostKey, w.Credential}.hop()}
	for _, h := range w.Hops {
		if h == nil {
			h = new(wireHop)
		}
		s.Hops = append(s.Hops, h.hop())
	}
	return s
}

func (w wireHop) hop() Hop {
	return Hop{Address: text(w.Address), Port: port(w.Port), User: text(w.User), HostKey: text(w.HostKey), Credential: text(w.Credential)}
}

func wireOfSSH(s SSH) wireSSH {
	h := wireOfHop(s.Hop)
	w := wireSSH{Address: h.Address, Port: h.Port, User: h.User, HostKey: h.HostKey, Credential: h.Credential}
	for _, h := range s.Hops {
		hop := wireOfHop(h)
		w.Hops = append(w.Hops, &hop)
	}
	return w
}

func wireOfHop(h Hop) wireHop {
	return wireHop{Address: pointer(h.Address), Port: portPointer(h.Port), User: pointer(h.User), HostKey: pointer(h.HostKey), Credential: pointer(h.Credential)}
}
