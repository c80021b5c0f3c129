// Package powerloss takes the power away from the durable store and from the broker, again and again.
//
// What is tested lives on an ext4 image, and the image on a file system that can clone files. A clone, taken at any
// moment, is what the device would hold if the power failed then: what was flushed, and of the rest as much as the
// kernel happened to have written. The clone is mounted, which replays ext4's own journal, and everything goes on
// from there, for several generations.
//
// It takes root, loop devices and mkfs.xfs, and minutes; so nothing runs unless LETO_POWERLOSS_ROUNDS says how often
// the power is to fail. Mounts are made in a mount namespace of the test's own: whatever ends it, the kernel cleans up.
//
//	LETO_POWERLOSS_ROUNDS=100 go test -count=1 -v -timeout 2h ./interop/powerloss
//
// LETO_POWERLOSS_SEED makes other chains, and LETO_POWERLOSS_KEEP names a folder that gets the image that a failure
// was found in, as it was before anything opened it.
package powerloss
