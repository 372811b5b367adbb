-- part: Who had arrived, when, and by which submission numbers: the rollup of what had arrived at the collector by an instant, as far back as lookback_s before it. By arrival, so that a host whose clock is off is judged like any other.
-- parameter at: DateTime64(9, 'UTC') = now | The instant to judge by, on the collector's clock: what arrived later is not known yet.
-- parameter lookback_s: UInt32 = 3600 | How long before `at` to look, in s.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
SELECT
    service_instance_id, host_name, service_name, engine_package, gpu_ids, window_started_at, first_started_at, last_started_at, last_ended_at,
    last_received_at, executions, sequence_first, sequence_last, sequences
FROM cell_windows
WHERE received_on BETWEEN toDate(subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32})) AND toDate({at:DateTime64(9, 'UTC')})
    AND last_received_at > subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32})
    AND last_received_at <= {at:DateTime64(9, 'UTC')}
    AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
