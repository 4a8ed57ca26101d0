// SPDX-License-Identifier: Apache-2.0
package v1beta1

// QueueAllocationGateKey is what Volcano 1.15.0 has in its own copy of this module; the proxy has v1.14.0, which lacks it.
const QueueAllocationGateKey = GroupName + "/queue-allocation-gate"
