package codec

// Role says which end of a link speaks [2.8.1].
type Role bool

// The two roles.
const (
	RoleSender   Role = false
	RoleReceiver Role = true
)

// String returns "sender" or "receiver".
func (r Role) String() string {
	if r == RoleReceiver {
		return "receiver"
	}
	return "sender"
}

// Values of snd-settle-mode [2.8.2].
const (
	SettleUnsettled uint8 = 0
	SettleSettled   uint8 = 1
	SettleMixed     uint8 = 2
)

// Values of rcv-settle-mode [2.8.3].
const (
	ReceiveFirst  uint8 = 0
	ReceiveSecond uint8 = 1
)
