-- question: Which alerts changed their state, when, and what was measured then?
-- parameter from: DateTime64(9, 'UTC') = -1d | Changes from this instant on.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Changes before this instant.
-- parameter alert: String = '' | One rule's; '' is any.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter limit: UInt64 = 1000 | At most so many, the latest first.
-- column changed_at [time] | When, by the evaluator's clock.
-- column alertname [] | The rule.
-- column severity [] | Its severity.
-- column state [] | What it became: pending, firing, no_data, resolved, gone or inactive.
-- column state_before [] | What it was.
-- column starts_at [time] | When it began to fire; empty where it never did.
-- column service_instance_id [] | The engine instance, where the rule names one.
-- column host_name [] | Host, where the rule names one.
-- column cell [] | The cell, where the rule names one.
-- column summary [] | Its summary.
-- column finding [] | The diagnosis told with it; '' where none was.
-- column labels [] | All of its labels: its identity.
-- column measured [] | The numbers of the query's row.
-- table: changed_at, alertname, state, host_name, summary, state_before, cell
-- example: tachograph query alert_history --param from=-7d --param alert=StuckInPlain
SELECT
    changed_at, alertname, severity, state, state_before, starts_at, service_instance_id, host_name, cell,
    annotations['summary'] AS summary,
    annotations['finding'] AS finding,
    labels, measured
FROM alert_history
WHERE changed_at >= {from:DateTime64(9, 'UTC')}
    AND changed_at < {to:DateTime64(9, 'UTC')}
    AND ({alert:String} = '' OR alertname = {alert:String})
    AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
    AND ({host:String} = '' OR host_name = {host:String})
ORDER BY changed_at DESC, alertname, labels
LIMIT {limit:UInt64}
