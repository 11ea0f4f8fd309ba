/// The points of a series as positions in a panel.
struct Curve {
    struct Position: Hashable {
        var x: Double
        var y: Double
    }

    /// Stretches without a gap, each with at most four points in a column of pixels.
    private(set) var runs: [[Position]] = []

    /// Maps `points`, whose times may have any order, by `position`; a value for which it gives `nil` is a gap.
    init(_ points: [TimeChart.Point], position: (TimeChart.Point) -> Position?) {
        let known = points.filter(\.time.isFinite)
        let isSorted = zip(known, known.dropFirst()).allSatisfy { $0.time <= $1.time }
        var run: [Position] = []
        var column = Column()
        func isNext(_ position: Position) -> Bool { column.number.map { $0 != Int(position.x) } ?? false }
        for point in isSorted ? known : known.sorted(by: { $0.time < $1.time }) {
            guard let next = position(point) else {
                run += column.take()
                if !run.isEmpty { runs.append(run) }
                run = []
                continue
            }
            if isNext(next) { run += column.take() }
            column.add(next)
        }
        run += column.take()
        if !run.isEmpty { runs.append(run) }
    }

    /// The points of one column of pixels: the first, the lowest, the highest and the last show where the curve goes.
    private struct Column {
        private(set) var number: Int?
        private var points: [Position] = []
        private var count = 0

        mutating func add(_ position: Position) {
            number = Int(position.x)
            if points.count < 4 {
                points.append(position)
                return
            }
            let candidates = points + [position]
            let low = candidates.indices.min { candidates[$0].y < candidates[$1].y } ?? 0
            let high = candidates.indices.max { candidates[$0].y < candidates[$1].y } ?? 0
            points = Set([0, low, high, 4]).sorted().map { candidates[$0] }
        }

        mutating func take() -> [Position] {
            defer { self = Column() }
            return points
        }
    }
}
