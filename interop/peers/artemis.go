package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func artemis() *peer {
	return &peer{
		name:     "Artemis",
		accepted: "flushed to the device (`journal-datasync`, its default)",
		version: func(home string) (string, error) {
			return jar(filepath.Join(home, "artemis", "dist", "lib"), "artemis-server")
		},
		lay: layArtemis,
		command: func(home, dir string, _ int) *exec.Cmd {
			dist := filepath.Join(home, "artemis", "dist")
			// What `artemis create` writes into artemis.profile, without its web console.
			return exec.Command("java", "-XX:AutoBoxCacheMax=20000", "-XX:+UseG1GC", "-XX:+UseStringDeduplication",
				"-Xms512M", "-Xmx2G", "-Dlog4j2.disableJmx=true", "--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED",
				"-classpath", filepath.Join(dist, "lib", "artemis-boot.jar"),
				"-Dartemis.home="+dist, "-Dartemis.instance="+dir, "-Dartemis.instance.etc="+filepath.Join(dir, "etc"),
				"-Ddata.dir="+filepath.Join(dir, "data"), "-Djava.library.path="+filepath.Join(dist, "bin", "lib", "linux-x86_64"),
				"org.apache.activemq.artemis.boot.Artemis", "run")
		},
		queue: plain,
		topic: "fan",
	}
}

// measured finds what `artemis create` measured of this machine's device.
var measured = regexp.MustCompile(`<(journal-type|journal-buffer-timeout|journal-max-io|page-sync-timeout)>\w+</`)

func layArtemis(home, dir string, port int) error {
	created, err := os.ReadFile(filepath.Join(home, "artemis", "instance", "etc", "broker.xml"))
	if err != nil {
		return err
	}
	var device, addresses strings.Builder
	for _, m := range measured.FindAllStringSubmatch(string(created), -1) {
		fmt.Fprintf(&device, "    %s%s>\n", m[0], m[1])
	}
	for n := range queues {
		fmt.Fprintf(&addresses, "      <address name=\"%[1]s\"><anycast><queue name=\"%[1]s\"/></anycast></address>\n", plain(n))
	}
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		return err
	}
	if err := write(dir, "etc/bootstrap.xml", fmt.Sprintf(`<broker xmlns="http://activemq.apache.org/schema">
  <jaas-security domain="bench"/>
  <server configuration="file:%s/etc/broker.xml"/>
</broker>
`, dir)); err != nil {
		return err
	}
	if err := write(dir, "etc/management.xml", `<management-context xmlns="http://activemq.apache.org/schema"/>`+"\n"); err != nil {
		return err
	}
	return write(dir, "etc/broker.xml", fmt.Sprintf(`<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>bench</name>
    <security-enabled>false</security-enabled>
    <persistence-enabled>true</persistence-enabled>
%[2]s    <journal-datasync>true</journal-datasync>
    <journal-min-files>2</journal-min-files>
    <journal-pool-files>10</journal-pool-files>
    <journal-device-block-size>4096</journal-device-block-size>
    <journal-file-size>10M</journal-file-size>
    <paging-directory>%[1]s/data/paging</paging-directory>
    <bindings-directory>%[1]s/data/bindings</bindings-directory>
    <journal-directory>%[1]s/data/journal</journal-directory>
    <large-messages-directory>%[1]s/data/large</large-messages-directory>
    <max-disk-usage>99</max-disk-usage>
    <acceptors>
      <acceptor name="amqp">tcp://127.0.0.1:%[3]d?protocols=AMQP;useEpoll=true;tcpSendBufferSize=1048576;tcpReceiveBufferSize=1048576;amqpCredits=1000;amqpLowCredits=300;amqpDuplicateDetection=true;amqpMinLargeMessageSize=102400</acceptor>
    </acceptors>
    <address-settings>
      <address-setting match="#">
        <max-size-bytes>-1</max-size-bytes>
        <page-size-bytes>10M</page-size-bytes>
        <address-full-policy>PAGE</address-full-policy>
      </address-setting>
    </address-settings>
    <addresses>
%[4]s      <address name="fan"><multicast/></address>
    </addresses>
  </core>
</configuration>
`, dir, &device, port, &addresses))
}
