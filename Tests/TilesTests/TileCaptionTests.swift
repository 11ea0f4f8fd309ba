import Testing
import Tiles

@Suite("Captions and selection of tiles")
struct TileCaptionTests {
    private let caption = TileCaption(participant: "robot-7", track: "camera", figures: ["64x48", "30 fps", "2 ms"])

    private func piece(_ text: String, _ role: TileCaption.Role, _ column: Int, _ line: Int) -> TileCaption.Piece {
        TileCaption.Piece(text: text, role: role, column: column, line: line)
    }

    @Test("Names are on the left and figures on the right, in one line if both fit")
    func oneLine() {
        let names = [piece("robot-7", .participant, 0, 0), piece("camera", .track, 8, 0)]
        let figures = "64x48 · 30 fps · 2 ms"
        #expect(caption.set(columns: 50) == names + [piece(figures, .figures, 29, 0)])
        #expect(caption.set(columns: 37) == names + [piece(figures, .figures, 16, 0)])
        #expect(caption.set(columns: 36) == names + [piece(figures, .figures, 0, 1)])
    }

    @Test("A caption that does not fit loses parts or is cut off: the picture's size first, its age last")
    func narrow() {
        let names = [piece("robot-7", .participant, 0, 0), piece("camera", .track, 8, 0)]
        #expect(caption.set(columns: 20) == names + [piece("30 fps · 2 ms", .figures, 0, 1)])
        let cut = [piece("robot-7", .participant, 0, 0), piece("ca…", .track, 8, 0)]
        #expect(caption.set(columns: 11) == cut + [piece("2 ms", .figures, 0, 1)])
        #expect(caption.set(columns: 9) == [piece("robot-7", .participant, 0, 0), piece("2 ms", .figures, 0, 1)])
        #expect(caption.set(columns: 3) == [piece("ro…", .participant, 0, 0), piece("2 …", .figures, 0, 1)])
        #expect(caption.set(columns: 1) == [piece("…", .participant, 0, 0), piece("…", .figures, 0, 1)])
        #expect(caption.set(columns: 0).isEmpty)
    }

    @Test("No piece leaves its line or covers another, however narrow the tile is", arguments: 1...60)
    func anyWidth(columns: Int) {
        var caption = caption
        for warning in [nil, "paused", "no picture for 123 s"] {
            caption.warning = warning
            let pieces = caption.set(columns: columns)
            #expect(pieces.contains { $0.role == (warning == nil ? .figures : .warning) })
            for line in 0...1 {
                var end = -1
                for piece in pieces where piece.line == line {
                    #expect(piece.column > end || (end == -1 && piece.column == 0))
                    #expect(!piece.text.isEmpty && piece.column + piece.text.count <= columns)
                    end = piece.column + piece.text.count
                }
            }
        }
    }

    @Test("Steps go from all tracks to the first, on to the last, and back to all")
    func steps() {
        let tracks = ["a", "b", "c"]
        var selection = TileSelection()
        var seen: [[String]] = []
        for _ in 0..<4 {
            selection.step(forward: true, of: tracks)
            seen.append(selection.shown(of: tracks))
        }
        #expect(seen == [["a"], ["b"], ["c"], tracks])
        selection.step(forward: false, of: tracks)
        #expect(selection.shown(of: tracks) == ["c"])
        selection.show(2, of: tracks)
        #expect(selection.shown(of: tracks) == ["b"])
        selection.show(4, of: tracks)
        #expect(selection.shown(of: tracks) == ["b"])
        selection.showAll()
        #expect(selection.shown(of: tracks) == tracks)
    }

    @Test("A track that is shown alone stays while others come and go; when it goes, all others are shown")
    func comingAndGoing() {
        var selection = TileSelection()
        selection.show(2, of: ["a", "b"])
        #expect(selection.shown(of: ["b", "c", "d"]) == ["b"])
        #expect(selection.shown(of: ["c", "d"]) == ["c", "d"])
        selection.step(forward: true, of: ["c", "d"])
        #expect(selection.shown(of: ["c", "d"]) == ["c"])
        selection.step(forward: true, of: [])
        #expect(selection.shown(of: []).isEmpty)
        // A single track, alone or not, looks the same: the step that comes after more tracks have come goes to the
        // first.
        selection.step(forward: true, of: ["c"])
        #expect(selection.shown(of: ["c"]) == ["c"])
    }
}
