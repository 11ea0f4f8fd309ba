import RoomKit
import Wording

extension VideoPipeRenderer {
    /// The error for the user; a reader that has gone is none, because it wanted no more.
    var failure: RecordingError? { error.flatMap { $0.isReaderGone ? nil : $0 } }

    /// Whether nobody takes further pictures.
    var isOver: Bool { error != nil || Terminal.isReaderGone }

    /// Completes the output, and reports what was written or why it failed.
    func finishPiping(_ reporter: Reporter) async {
        let isWhole = await finish()
        if let failure { return reporter.reportFailure(FailureEvent(failure)) }
        let size = dimensions.map { " of \($0)" } ?? ""
        let end = isWhole ? "" : "; its reader had stopped reading, so the last one is incomplete"
        Terminal.note("\(counted(framesWritten, "picture"))\(size) went to standard output\(end).")
    }
}
