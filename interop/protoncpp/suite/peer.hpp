// What the scenarios share: connections and links of Proton's C++ binding, made blocking.
//
// Proton counts references without atomics, and each handle (connection, link, delivery, tracker, source)
// counts when it is copied or destroyed. So handles stay on the thread of the connection's container: in
// handlers and in what Peer::run is given. A scenario, on its own thread, has plain values and messages,
// which are copied whole.
#pragma once

#include <proton/connection.hpp>
#include <proton/connection_options.hpp>
#include <proton/container.hpp>
#include <proton/delivery.h>
#include <proton/delivery.hpp>
#include <proton/delivery_mode.hpp>
#include <proton/disposition.h>
#include <proton/error_condition.hpp>
#include <proton/link.hpp>
#include <proton/message.hpp>
#include <proton/messaging_handler.hpp>
#include <proton/receiver.hpp>
#include <proton/receiver_options.hpp>
#include <proton/reconnect_options.hpp>
#include <proton/sender.hpp>
#include <proton/sender_options.hpp>
#include <proton/session.hpp>
#include <proton/source.hpp>
#include <proton/source_options.hpp>
#include <proton/target.hpp>
#include <proton/target_options.hpp>
#include <proton/tracker.hpp>
#include <proton/transport.hpp>
#include <proton/types.hpp>
#include <proton/work_queue.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

const auto patience = std::chrono::seconds(20); // that any single wait may take

inline std::string fresh(const std::string& what) {
    static int serial = 0;
    return "protoncpp-" + what + "-" + std::to_string(getpid()) + "-" + std::to_string(++serial);
}

inline void ensure(bool is, const std::string& what) {
    if (!is) throw std::runtime_error("not so: " + what);
}

// Events lets a thread wait for what handlers tell.
class Events {
  public:
    void tell(const std::function<void()>& what) {
        std::lock_guard<std::mutex> held(mutex);
        what();
        changed.notify_all();
    }

    void wait(const std::string& what, const std::function<bool()>& there) {
        std::unique_lock<std::mutex> held(mutex);
        if (!changed.wait_for(held, patience, [&] { return there() || !error.empty(); })) throw std::runtime_error("waiting for " + what + ": time is up");
        if (!there()) throw std::runtime_error("waiting for " + what + ": " + error);
    }

    void fail(const proton::error_condition& e) {
        tell([&] { error = e.what(); });
    }

    bool failed() {
        std::lock_guard<std::mutex> held(mutex);
        return !error.empty();
    }

  private:
    std::mutex mutex;
    std::condition_variable changed;
    std::string error;
};

// Arrived is a message, and the number by which its receiver knows the delivery.
struct Arrived {
    uint64_t number;
    proton::message message;
};

// Raw shows the C library's delivery, for what the binding can't say.
struct Raw : proton::delivery {
    explicit Raw(const proton::delivery& d) : proton::delivery(d) {}
    pn_delivery_t* get() const { return pn_object(); }
};

class Peer;

// Link is what the peer keeps of a sender or receiver.
class Link : public proton::messaging_handler {
  public:
    Events events;

    // forget drops the handles.
    virtual void forget() = 0;
};

class Sender : public Link {
  public:
    proton::sender link; // of the container's thread
    bool open = false, sendable = false;
    std::map<proton::binary, std::string> outcomes;
    Peer& peer;

    explicit Sender(Peer& p) : peer(p) {}
    void forget() override { link = proton::sender(); }
    void on_sender_open(proton::sender& s) override {
        events.tell([&] { link = s, open = true; });
    }
    void on_sendable(proton::sender&) override {
        events.tell([&] { sendable = true; });
    }
    void on_sender_error(proton::sender& s) override { events.fail(s.error()); }
    void on_tracker_accept(proton::tracker& t) override { outcome(t, "accepted"); }
    void on_tracker_reject(proton::tracker& t) override { outcome(t, "rejected"); }
    void on_tracker_release(proton::tracker& t) override { outcome(t, "released"); }
    void on_error(const proton::error_condition& e) override { events.fail(e); }

    proton::binary post(const proton::message& m);
    void settled(const proton::binary& tag, const std::string& want = "accepted") {
        std::string outcome;
        events.wait("an outcome", [&] {
            auto found = outcomes.find(tag);
            if (found == outcomes.end()) return false;
            outcome = found->second;
            return true;
        });
        ensure(outcome == want, outcome + " is " + want);
    }
    void send(const proton::message& m) { settled(post(m)); }

  private:
    void outcome(proton::tracker& t, const std::string& what) {
        proton::binary tag = t.tag();
        events.tell([&] { outcomes[tag] = what; });
    }
};

class Receiver : public Link {
  public:
    proton::receiver link; // of the container's thread
    int opens = 0;
    bool drained = false;
    std::deque<Arrived> arrived;
    Peer& peer;

    explicit Receiver(Peer& p) : peer(p) {}
    void forget() override {
        deliveries.clear();
        link = proton::receiver();
    }
    void on_receiver_open(proton::receiver& r) override {
        events.tell([&] { link = r, opens++; });
    }
    void on_receiver_error(proton::receiver& r) override { events.fail(r.error()); }
    void on_message(proton::delivery& d, proton::message& m) override {
        deliveries.emplace(++number, d);
        events.tell([&] { arrived.push_back(Arrived{number, m}); });
    }
    void on_receiver_drain_finish(proton::receiver&) override {
        events.tell([&] { drained = true; });
    }
    void on_error(const proton::error_condition& e) override { events.fail(e); }

    Arrived next() {
        std::deque<Arrived> first;
        events.wait("a message", [&] {
            if (!first.empty()) return true;
            if (arrived.empty()) return false;
            first.push_back(std::move(arrived.front()));
            arrived.pop_front();
            return true;
        });
        return first.front();
    }
    // idle is whether all that arrived was taken.
    bool idle() {
        bool is = false;
        events.tell([&] { is = arrived.empty(); });
        return is;
    }
    Arrived receive();
    proton::message accept();
    void settle(const Arrived& a, const std::function<void(proton::delivery&)>& how);
    void modify(const Arrived& a, bool failed, bool undeliverable);
    std::vector<Arrived> drain(int credit);
    void close();
    void empty() { ensure(drain(10).empty(), "the queue is empty"); }

  private:
    std::map<uint64_t, proton::delivery> deliveries; // of the container's thread: those that aren't settled
    uint64_t number = 0;
};

class Peer : public proton::messaging_handler {
  public:
    explicit Peer(proton::connection_options options = proton::connection_options(), const std::string& id = fresh("container"))
        : options(options.container_id(id).idle_timeout(proton::duration::FOREVER)), container(*this, id) {
        runner = std::thread([this] { container.run(); });
        try {
            events.wait("the connection", [&] { return opens > 0; });
        } catch (...) {
            finish();
            throw;
        }
    }
    ~Peer() { finish(); }

    void on_container_start(proton::container& c) override { c.connect(std::getenv("LETO_AMQP_URL"), options); }
    void on_connection_open(proton::connection& c) override {
        events.tell([&] {
            if (opens++ == 0) connection = c, queue = &c.work_queue(); // a connection that comes back is the same
        });
    }
    void on_connection_close(proton::connection&) override {
        events.tell([&] { closed = true; });
    }
    void on_transport_close(proton::transport&) override {
        events.tell([&] { closed = true; });
    }
    void on_error(const proton::error_condition& e) override { events.fail(e); }

    // run has the connection's thread do something.
    void run(const std::function<void()>& what) {
        auto done = std::make_shared<std::promise<void>>();
        auto result = done->get_future();
        ensure(queue->add([=] {
            try {
                what();
                done->set_value();
            } catch (...) {
                done->set_exception(std::current_exception());
            }
        }), "the connection takes work");
        ensure(result.wait_for(patience) == std::future_status::ready, "the connection works");
        result.get();
    }

    std::shared_ptr<Sender> sender(const std::string& address, proton::sender_options options = proton::sender_options()) {
        auto s = std::make_shared<Sender>(*this);
        links.push_back(s);
        run([&] { connection.open_sender(address, options.name(fresh("sender")).handler(*s)); });
        s->events.wait("the sender", [&] { return s->open; });
        return s;
    }

    std::shared_ptr<Receiver> receiver(const std::string& address, proton::receiver_options options = proton::receiver_options(),
                                       proton::source_options source = proton::source_options(), const std::string& name = fresh("receiver")) {
        auto r = std::make_shared<Receiver>(*this);
        links.push_back(r);
        run([&] { connection.open_receiver(address, options.name(name).credit_window(0).auto_accept(false).source(source).handler(*r)); });
        r->events.wait("the receiver", [&] { return r->opens > 0; });
        return r;
    }

    std::shared_ptr<Receiver> browser(const std::string& address) {
        return receiver(address, proton::receiver_options(), proton::source_options().distribution_mode(proton::source::COPY));
    }

    void send(const std::string& address, const std::vector<proton::message>& messages) {
        auto s = sender(address);
        for (auto& m : messages) s->send(m);
    }

    // fence goes to the broker and back.
    void fence() {
        proton::message m("fence");
        m.ttl(proton::duration(1));
        send("fence", {m});
    }

    proton::message find(const std::string& address, const std::string& id) {
        for (int i = 0; i < 200; i++) {
            auto b = browser(address);
            auto seen = b->drain(10000);
            b->close();
            for (auto& a : seen)
                if (a.message.id() == proton::message_id(id)) return a.message;
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        throw std::runtime_error(id + " doesn't come to " + address);
    }

    Events events;
    int opens = 0;
    proton::connection connection; // of the container's thread

  private:
    void forget() {
        for (auto& l : links) l->forget();
        connection = proton::connection();
    }

    // finish closes the connection; the container ends with it.
    void finish() {
        bool ends = queue && queue->add([this] {
            for (auto& l : links) l->forget();
            connection.close();
        });
        try {
            if (ends) events.wait("the close", [&] { return closed; });
        } catch (const std::exception&) {
            ends = false;
        }
        if (!ends) container.stop();
        runner.join();
        forget(); // nobody else is left
    }

    bool closed = false;
    proton::work_queue* queue = nullptr; // as long as there is the connection
    std::vector<std::shared_ptr<Link>> links;
    proton::connection_options options;
    proton::container container;
    std::thread runner;
};

inline proton::binary Sender::post(const proton::message& m) {
    for (;;) {
        bool sent = false;
        proton::binary tag;
        events.tell([&] { sendable = false; });
        peer.run([&] {
            if (link.credit() > 0) tag = link.send(m).tag(), sent = true;
        });
        if (sent) return tag;
        events.wait("credit", [&] { return sendable; });
    }
}

inline Arrived Receiver::receive() {
    peer.run([&] { link.add_credit(1); });
    return next();
}

inline void Receiver::settle(const Arrived& a, const std::function<void(proton::delivery&)>& how) {
    peer.run([&] {
        auto kept = deliveries.find(a.number);
        ensure(kept != deliveries.end(), "the delivery isn't settled yet");
        how(kept->second);
        deliveries.erase(kept);
    });
}

inline proton::message Receiver::accept() {
    Arrived a = receive();
    settle(a, [](proton::delivery& d) { d.accept(); });
    return a.message;
}

inline void Receiver::modify(const Arrived& a, bool failed, bool undeliverable) {
    settle(a, [=](proton::delivery& d) {
        pn_delivery_t* raw = Raw(d).get();
        pn_disposition_set_failed(pn_delivery_local(raw), failed);
        pn_disposition_set_undeliverable(pn_delivery_local(raw), undeliverable);
        pn_delivery_update(raw, PN_MODIFIED);
        d.settle();
    });
}

inline std::vector<Arrived> Receiver::drain(int credit) {
    peer.fence(); // Proton writes flows before dispositions
    events.tell([&] { drained = false; });
    peer.run([&] {
        link.add_credit(credit);
        link.drain();
    });
    events.wait("the drain", [&] { return drained; });
    std::vector<Arrived> came;
    events.tell([&] {
        came.assign(arrived.begin(), arrived.end());
        arrived.clear();
    });
    return came;
}

inline void Receiver::close() {
    peer.run([&] {
        deliveries.clear();
        link.close();
    });
    peer.fence();
}
