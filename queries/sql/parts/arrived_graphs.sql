-- part: The rollup by graph of what had arrived at the collector by an instant, as far back as lookback_s before it. By arrival, so that a host whose clock is off is judged like any other.
-- parameter at: DateTime64(9, 'UTC') = now | The instant to judge by, on the collector's clock: what arrived later is not known yet.
-- parameter lookback_s: UInt32 = 3600 | How long before `at` to look, in s.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
SELECT *
FROM cell_graphs
WHERE received_on BETWEEN toDate(subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32})) AND toDate({at:DateTime64(9, 'UTC')})
    AND last_received_at > subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32})
    AND last_received_at <= {at:DateTime64(9, 'UTC')}
    AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
