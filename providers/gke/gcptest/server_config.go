package gcptest

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// GetServerConfig answers the versions that a location offers.
func (c *Cloud) GetServerConfig(_ context.Context, r *containerpb.GetServerConfigRequest) (*containerpb.ServerConfig, error) {
	if err := c.inProject(r.GetName(), "locations"); err != nil {
		return nil, err
	}
	if err := c.location(strings.Split(r.GetName(), "/")[3]); err != nil {
		return nil, err
	}
	out := &containerpb.ServerConfig{
		DefaultClusterVersion: channels[containerpb.ReleaseChannel_REGULAR],
		ValidMasterVersions:   slices.Clone(Versions),
		ValidNodeVersions:     slices.Clone(Versions),
		DefaultImageType:      "COS_CONTAINERD",
		ValidImageTypes:       []string{"COS_CONTAINERD", "UBUNTU_CONTAINERD"},
	}
	for _, channel := range []containerpb.ReleaseChannel_Channel{
		containerpb.ReleaseChannel_RAPID, containerpb.ReleaseChannel_REGULAR, containerpb.ReleaseChannel_STABLE, containerpb.ReleaseChannel_EXTENDED,
	} {
		at := slices.Index(Versions, channels[channel])
		out.Channels = append(out.Channels, &containerpb.ServerConfig_ReleaseChannelConfig{
			Channel: channel, DefaultVersion: channels[channel], ValidVersions: slices.Clone(Versions[at:]), UpgradeTargetVersion: channels[channel],
		})
	}
	return out, nil
}

func number10(n int64) string { return strconv.FormatInt(n, 10) }
