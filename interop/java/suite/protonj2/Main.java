package protonj2;

import run.Scenarios;

/** Scenarios written with Apache Qpid ProtonJ2. */
public final class Main {
    public static void main(String[] args) {
        var scenarios = new Scenarios();
        Messages.add(scenarios);
        Outcomes.add(scenarios);
        Flow.add(scenarios);
        Addresses.add(scenarios);
        Transactions.add(scenarios);
        var restarts = new Scenarios();
        Restart.add(restarts);
        Scenarios.main(args, scenarios, restarts, new Exchange());
    }
}
