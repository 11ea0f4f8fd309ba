/// The longest delay of the last acknowledgements that their own way back added.
///
/// A download on the sender's side, a radio that sleeps or a busy uplink of the receiver delays acknowledgements and
/// not the media. Two halves of a window are kept, so that it takes few bytes and constant time.
struct AcknowledgementLateness: Hashable, Sendable {
    /// The largest value of the last one to two halves of the window, in microseconds.
    var value: Int64 { max(present, before) }

    private var present: Int64 = 0
    private var before: Int64 = 0
    private var begun: Int64 = 0

    /// Takes in the lateness of an acknowledgement; halves of the window are `half` long.
    mutating func add(_ lateness: Int64, half: Int64, at now: Int64) {
        if now - begun >= half {
            before = now - begun < 2 * half ? present : 0
            present = 0
            begun = now
        }
        present = max(present, lateness)
    }
}
