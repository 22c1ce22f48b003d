package connect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/kevinburke/ssh_config"
)

// DefaultSSH is the login without a provider block: as OpenSSH does it, with
// the settings of the environment, the agent, ~/.ssh/config and the keys in its
// folder.
func DefaultSSH(ctx context.Context) (SSHSettings, diag.Diagnostics) {
	s, diags := ReadSSH(ctx, types.ObjectNull(nil))
	const name = "~/.ssh/config"
	file, err := readConfigFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = &configFile{name, new(ssh_config.Config)}, nil
	}
	if err != nil {
		diags.AddError("SSH configuration cannot be used", fmt.Sprintf("Fix it: %s.", err))
	}
	s.config = file
	return s, diags
}
