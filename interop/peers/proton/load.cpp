// Sends or receives messages as fast as it goes, each unsettled and acknowledged, with Proton's C++ binding: another
// client to hold against `leto bench`.
//
//	load send|receive URL ADDRESS COUNT SIZE
//
// prints {"messages":N,"seconds":S,"cpu_us":C}: seconds from the first message to the last outcome, and the program's
// own CPU time in microseconds.

#include <proton/connection.hpp>
#include <proton/container.hpp>
#include <proton/delivery.hpp>
#include <proton/link.hpp>
#include <proton/message.hpp>
#include <proton/messaging_handler.hpp>
#include <proton/receiver_options.hpp>
#include <proton/sender.hpp>
#include <proton/tracker.hpp>

#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

namespace {

typedef std::chrono::steady_clock watch;

class load : public proton::messaging_handler {
  public:
    load(bool sends, std::string url, std::string address, long count, std::size_t size)
        : sends_(sends), url_(url), address_(address), count_(count), body_(size, 'x') {}

    void on_container_start(proton::container& c) override {
        proton::connection connection = c.connect(url_);
        if (sends_) connection.open_sender(address_);
        else connection.open_receiver(address_, proton::receiver_options().credit_window(1000));
    }

    void on_sendable(proton::sender& s) override {
        for (; s.credit() > 0 && begun_ < count_; begun_++) {
            if (begun_ == 0) began_ = watch::now();
            s.send(proton::message(body_));
        }
    }

    void on_tracker_settle(proton::tracker& t) override { finish(t.connection()); }

    void on_message(proton::delivery& d, proton::message& m) override {
        if (begun_++ == 0) began_ = watch::now();
        if (proton::get<proton::binary>(m.body()).size() != body_.size()) std::abort();
        d.accept();
        finish(d.connection());
    }

  private:
    void finish(proton::connection c) {
        if (++done_ < count_) return;
        double seconds = std::chrono::duration<double>(watch::now() - began_).count();
        rusage r;
        getrusage(RUSAGE_SELF, &r);
        long cpu = (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec + r.ru_stime.tv_usec;
        std::cout << "{\"messages\":" << done_ << ",\"seconds\":" << seconds << ",\"cpu_us\":" << cpu << "}" << std::endl;
        c.close();
    }

    bool sends_;
    std::string url_, address_;
    long count_, begun_ = 0, done_ = 0;
    proton::binary body_;
    watch::time_point began_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        std::cerr << "usage: load send|receive URL ADDRESS COUNT SIZE" << std::endl;
        return 2;
    }
    load l(argv[1] == std::string("send"), argv[2], argv[3], std::atol(argv[4]), std::atol(argv[5]));
    proton::container(l).run();
}
