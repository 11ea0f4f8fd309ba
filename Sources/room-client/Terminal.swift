import Foundation
import MediaFiles
import ProgramSupport
import RoomKit
import Synchronization
import Threading
import Wording

/// Writes events and results to standard output, and error messages to standard error.
enum Terminal {
    /// Where events and results go: standard output, or standard error while standard output carries pictures.
    private static let output = Monitor(STDOUT_FILENO)

    /// Makes everything go to standard error, because standard output is for pictures.
    static func leaveOutputToPictures() {
        output.withLock { $0 = STDERR_FILENO }
    }

    /// Whether the output is a terminal, where a live status line makes sense.
    static var isInteractive: Bool { isatty(output.withLock { $0 }) == 1 && !isDumb }

    /// Whether `TERM` says that the terminal only takes lines, as in the shell of Emacs.
    ///
    /// Without a `TERM` nothing is known, and nearly all terminals do more.
    static var isDumb: Bool { ProcessInfo.processInfo.environment["TERM"] == "dumb" }

    /// Whether standard output is a pipe whose reader has gone.
    ///
    /// A socket counts as one. A terminal that has gone does not: under nohup, a program outlives it.
    static var isReaderGone: Bool {
        var status = stat()
        guard unsafe fstat(STDOUT_FILENO, &status) == 0, [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT) else {
            return false
        }
        var request = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return unsafe poll(&request, 1, 0) > 0 && request.revents & Int16(POLLERR | POLLHUP) != 0
    }

    /// Why output to standard output was lost, for example on a full disk; `nil` if nothing was lost.
    ///
    /// If the reader of a pipe is gone, that does not count as a loss: it wanted no more output.
    static var outputFailure: MediaFileError? { failure.withLock { $0 } }

    private static let failure = Monitor<MediaFileError?>(nil)

    /// The writers of a session's output, by descriptor.
    private static let writers = Monitor<[Int32: LineWriter]>([:])

    /// How long the program's end waits for a reader that reads nothing.
    private static let patience = Duration.seconds(2)

    /// Makes lines wait for a slow reader on threads of their own from now on, instead of their callers.
    ///
    /// A session must go on, and end, whether somebody reads what it reports or not. Before this, and in programs that
    /// only list something, every line is written in order and as fast as it is read.
    ///
    /// - Parameter note: The line of standard output that stands for a number of lines that were lost.
    static func writeInBackground(note: @escaping @Sendable (Int) -> String) {
        // Without a thread, callers wait as before.
        guard let output = try? writer(to: STDOUT_FILENO, note: note) else { return }
        // On one terminal, errors and events stay in order.
        let isShared = DescriptorOutput.isSame(STDOUT_FILENO, STDERR_FILENO)
        let errors = isShared ? output : try? writer(to: STDERR_FILENO) { "room-client: \(lossWords($0))\n" }
        writers.withLock { writers in
            writers[STDOUT_FILENO] = output
            writers[STDERR_FILENO] = errors
        }
    }

    private static func writer(
        to descriptor: Int32,
        note: @escaping @Sendable (Int) -> String
    ) throws(ThreadShortage) -> LineWriter {
        try LineWriter(name: "output", note: note) { writeNow($0, to: descriptor) }
    }

    /// The sentence about lines that nobody read in time, or that could not be written.
    static func lossWords(_ count: Int) -> String {
        let lines = count == 1 ? "1 line is" : "\(count) lines are"
        guard outputFailure == nil else { return "\(lines) missing here, because nothing could be written." }
        return "\(lines) missing here, because the output is read too slowly; write it to a file."
    }

    /// Waits until a session's lines are written, as long as somebody reads them.
    static func finishOutput() {
        let writers = writers.withLock { $0 }
        guard let output = writers[STDOUT_FILENO] else { return }
        // A reader that was given up is not waited for again.
        if outputFailure?.code != .readerStalled, output.flush(patience: patience) > 0 {
            let advice = "read it, or write it to a file"
            let error = MediaFileError(.readerStalled, .write, "-", "nobody read the last lines; \(advice)")
            failure.withLock { $0 = $0 ?? error }
        }
        if let errors = writers[STDERR_FILENO], errors !== output { _ = errors.flush(patience: patience) }
    }
    /// The preview that has the terminal, and the lines that wait until it gives the terminal back.
    private static let preview = Monitor<(screen: PreviewScreen?, held: [HeldLine])>((nil, []))

    private struct HeldLine: Sendable {
        var text: String
        var descriptor: Int32
    }

    /// The largest number of lines that wait for the end of a preview; older ones are left out.
    private static let maximumHeld = 100

    /// Leaves the terminal to a preview: lines appear below the picture, and again after its end.
    static func show(_ screen: PreviewScreen) {
        preview.withLock { $0.screen = screen }
    }

    /// Ends the preview, if there is one, and writes the lines that waited for its end.
    static func endPreview() {
        guard let screen = preview.withLock({ $0.screen }) else { return }
        screen.close()
        let held = preview.withLock { preview in
            defer { preview = (nil, []) }
            return preview.held
        }
        for line in held { write(line.text, to: line.descriptor) }
    }

    /// Writes a line, or keeps it while a preview has the terminal.
    private static func writeLine(_ text: String, to descriptor: Int32) {
        let line = harmless(text)
        let screen = preview.withLock { preview -> PreviewScreen? in
            guard let screen = preview.screen else { return nil }
            preview.held = preview.held.suffix(maximumHeld - 1) + [HeldLine(text: line + "\n", descriptor: descriptor)]
            return screen
        }
        if let screen { screen.setStatus(line) } else { write(line + "\n", to: descriptor) }
    }
    /// The last error messages, so that they are not repeated when the program ends.
    private static let complaints = Monitor<[String]>([])

    /// Writes an error message as one line.
    static func complain(_ text: String) {
        noteComplaint(text)
        writeLine("room-client: \(text)", to: STDERR_FILENO)
    }

    /// Writes an error message, unless it is one of the last ones.
    static func complainOnce(_ text: String) {
        if noteComplaint(text) { complain(text) }
    }

    /// Notes `text` as an error message; returns whether it was none of the last ones.
    @discardableResult static func noteComplaint(_ text: String) -> Bool {
        complaints.withLock { complaints in
            let isNew = !complaints.contains(text)
            complaints = complaints.suffix(15) + [text]
            return isNew
        }
    }

    /// Writes a line to standard error that is not an error message.
    static func note(_ text: String) {
        writeLine("room-client: \(text)", to: STDERR_FILENO)
    }

    /// Writes a line.
    static func say(_ line: String) {
        writeLine(line, to: output.withLock { $0 })
    }

    /// Whether the current line of the terminal is a status line.
    private static let hasStatus = Atomic(false)

    /// Replaces the current line of a terminal.
    static func showStatus(_ text: String) {
        let line = harmless(text)
        if let screen = preview.withLock({ $0.screen }) { return screen.setStatus(line) }
        hasStatus.store(true, ordering: .releasing)
        // Without wrapping, because only the last row of a wrapped line could be replaced.
        write("\r\u{1B}[K\u{1B}[?7l\(line)\u{1B}[?7h", to: output.withLock { $0 })
    }

    /// Clears the status line, if there is one, so that a full line can follow.
    static func clearStatus() {
        guard preview.withLock({ $0.screen == nil }), hasStatus.exchange(false, ordering: .acquiringAndReleasing) else {
            return
        }
        write("\r\u{1B}[K", to: output.withLock { $0 })
    }

    /// Descriptors without a writer, of which a failed write may have left a part of a line behind.
    private static let broken = Monitor<Set<Int32>>([])

    /// Writes all of `text`, at once or in its turn; ignores that a reader is gone.
    private static func write(_ text: String, to descriptor: Int32) {
        if let writer = writers.withLock({ $0[descriptor] }) { return writer.add(text) }
        let isBroken = broken.withLock { $0.remove(descriptor) } != nil
        guard !writeNow((isBroken ? "\n" : "") + text, to: descriptor) else { return }
        broken.withLock { _ = $0.insert(descriptor) }
    }

    /// Writes all of `text`; returns whether more can be written.
    ///
    /// The first loss on standard output is said at once, so that users do not find out an hour later.
    private static func writeNow(_ text: String, to descriptor: Int32) -> Bool {
        // A reader that has gone wanted no more.
        guard let status = DescriptorOutput.write(text, to: descriptor), status != EPIPE else { return true }
        guard descriptor == STDOUT_FILENO else { return false }
        let error = MediaFileError(.write, "-", status: status)
        let isFirst = failure.withLock { failure in
            defer { failure = failure ?? error }
            return failure == nil
        }
        if isFirst { complainOnce("\(error)") }
        return false
    }
}

/// Reports a command's progress: one JSON object per line, or lines of text and a live status line for people.
struct Reporter: Sendable {
    /// Whether JSON is written.
    var isJSON: Bool
    /// Whether a live status line may be shown.
    var hasStatusLine = true
    /// Where JSON lines go; by default to the program's output.
    var writeJSON: @Sendable (String) -> Void = { Terminal.say($0) }

    /// Reports an event, as JSON or as text; without `words` it is reported only as JSON.
    func report(_ event: some Encodable, _ words: String?) {
        if isJSON {
            if let line = Self.json(event) { writeJSON(line) }
        } else if let words {
            if Terminal.isInteractive { Terminal.clearStatus() }
            Terminal.say(words)
        }
    }

    private static func json(_ event: some Encodable) -> String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf",
            negativeInfinity: "-inf",
            nan: "nan"
        )
        guard let json = try? encoder.encode(TimedEvent(event: event)) else { return nil }
        return harmless(json: String(decoding: json, as: UTF8.self))
    }

    /// Begins a session: from now on, no reader of the output can hold it up.
    func beginSession() {
        Terminal.writeInBackground { [isJSON] count in
            let words = Terminal.lossWords(count)
            return (isJSON ? Self.json(FailureEvent(words)) ?? "" : "room-client: \(words)") + "\n"
        }
    }

    /// Writes a sentence for people: to standard output, or to standard error if that is for JSON.
    func say(_ words: String) {
        if isJSON { return Terminal.note(words) }
        endStatus()
        Terminal.say(words)
    }

    /// Reports a failure: a sentence on standard error and, with `--json`, also an object.
    func reportFailure(_ failure: FailureEvent) {
        if isJSON { report(failure, nil) } else { endStatus() }
        Terminal.complain(failure.sentence)
    }

    /// Reports something that the user should know: a sentence on standard error and, with `--json`, also an object.
    func reportWarning(_ event: some Encodable, _ sentence: String) {
        if isJSON { report(event, nil) } else { endStatus() }
        Terminal.complain(sentence)
    }

    /// Reports a failure, unless its sentence was already reported when it happened, or is being reported.
    func reportOnce(_ failure: FailureEvent) {
        if Terminal.noteComplaint(failure.sentence) { reportFailure(failure) }
    }

    /// Reports that a participant joined.
    func reportJoining(of participant: RemoteParticipant) {
        report(ParticipantEvent("participantConnected", participant), "\(participant.identity) joined.")
    }

    /// Reports that a participant left.
    func reportLeaving(of participant: RemoteParticipant) {
        report(ParticipantEvent("participantDisconnected", participant), "\(participant.identity) left.")
    }

    /// Reports a command's result as its last line; if lines before it were lost, that is reported first.
    func reportSummary(_ summary: some Encodable, _ words: String?) {
        Terminal.finishOutput()
        if let failure = Terminal.outputFailure {
            report(FailureEvent(failure), nil)
            Terminal.complainOnce("\(failure)")
        }
        report(summary, words)
    }

    /// What people are told if a signal ended the program before it had joined its room.
    static let endedBeforeJoining = "Ended before the room was joined."

    /// Reports as JSON that the session is over; for people, the program's last line says why.
    func reportDisconnection(_ error: RoomError?) {
        report(DisconnectedEvent(error), nil)
    }

    /// Reports that so many events came at once that the program missed some.
    func reportMissed(_ count: Int) {
        let missed = "\(counted(count, "event")) \(count == 1 ? "was" : "were") missed"
        reportFailure(FailureEvent("\(missed), because they came faster than the program read them."))
    }

    /// Whether there is a live status line: only for text output at a terminal.
    var showsStatus: Bool { hasStatusLine && !isJSON && Terminal.isInteractive }

    /// Updates the live status line, if there is one.
    func status(_ words: String) {
        if showsStatus { Terminal.showStatus(words) }
    }

    /// Clears the live status line.
    func endStatus() {
        if showsStatus { Terminal.clearStatus() }
    }
}
