package jms;

import run.Scenarios;

/** Scenarios written with Apache Qpid JMS. */
public final class Main {
    public static void main(String[] args) {
        var scenarios = new Scenarios();
        Messages.add(scenarios);
        Acknowledgement.add(scenarios);
        Delivery.add(scenarios);
        Destinations.add(scenarios);
        Transactions.add(scenarios);
        Delays.add(scenarios);
        Subscriptions.add(scenarios);
        var restarts = new Scenarios();
        Restart.add(restarts);
        Scenarios.main(args, scenarios, restarts, new Exchange());
    }
}
