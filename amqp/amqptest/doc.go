// Package amqptest holds what tests of a protocol machine need: scripts that
// play the peer of one machine, and a wire that joins two machines.
//
// A script is a text file about one rule of the specification. Its first line
// is a comment that names the section and the rule. Then, a line each:
//
//	config max-frame-size=1024 mechanisms=PLAIN,ANONYMOUS   what New is given
//	manual attach detach        the script answers these events itself with !
//	include opened              the lines of ../preludes/opened.txt
//
//	> begin channel=1 incoming-window=8     the peer writes a frame
//	> header amqp|sasl|tls                  … a protocol header
//	> empty channel=0                       … a frame without a body
//	> bytes 414d5150 `text` fill:100        … octets
//	> frame type=1 doff=3 ext=00000000 body=005310…   … a frame piece by piece; size= lies about its size
//	>+ begin                                … together with the next line that writes
//	10* > transfer delivery-id=%i delivery-tag=`%i`   ten times, %i counts from 0
//
//	< begin remote-channel=1    the machine's next frame; only the fields named are compared
//	< nothing                   nothing is to be written
//	< eof                       nothing more will be written or read
//	< *                         what else was written doesn't matter
//
//	= transfer delivery-id=0 payload=`abc`  the next event
//	! grant 10                              the shell acts on the link attached last, or link=name
//	@ 30s                                   time passes, in one step
//	? credit 5                              a value of the link or the connection
//
// Octets are written in hex, as `text`, or as fill:N for N octets "x". Fields
// have their names in the specification; a dot leads into a nested one
// (source.address=q, error.description=`…`, properties.product=x). A field
// that is "null" is absent.
//
// Events that need an answer are answered at once unless "manual" names them:
// opens and attaches are accepted as they are asked for, detach, end and close
// are mirrored. "! leave" goes on without an answer for now. What a script leaves unread, frames or events that matter,
// fails it.
package amqptest
