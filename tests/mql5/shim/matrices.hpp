// The type matrix, as far as the fallback uses it.
#pragma once
#include "arrays.hpp"

class matrix
{
    std::vector<double> cells;
    ulong rows = 0, cols = 0;

    template <class Cell> struct Row
    {
        Cell *first;
        ulong length;
        Cell &operator[](long i) const
        {
            if (i < 0 || i >= static_cast<long>(length))
                mqlrt::critical("matrix index out of range");
            return first[i];
        }
    };
    void check(long i) const
    {
        if (i < 0 || i >= static_cast<long>(rows))
            mqlrt::critical("matrix index out of range");
    }

  public:
    matrix() = default;
    void Init(ulong new_rows, ulong new_cols)
    {
        rows = new_rows;
        cols = new_cols;
        cells.assign(rows * cols, 12345.0); // not zeros: MQL5 promises none
    }
    ulong Rows() const { return rows; }
    ulong Cols() const { return cols; }
    Row<double> operator[](long i)
    {
        check(i);
        return {cells.data() + static_cast<ulong>(i) * cols, cols};
    }
    Row<const double> operator[](long i) const
    {
        check(i);
        return {cells.data() + static_cast<ulong>(i) * cols, cols};
    }
    matrix Transpose() const
    {
        matrix turned;
        turned.Init(cols, rows);
        for (ulong r = 0; r < rows; r++)
            for (ulong c = 0; c < cols; c++)
                turned.cells[c * rows + r] = cells[r * cols + c];
        return turned;
    }
    matrix MatMul(const matrix &other) const
    {
        matrix product;
        product.Init(rows, other.cols);
        std::fill(product.cells.begin(), product.cells.end(), 0.0);
        for (ulong r = 0; r < rows; r++)
            for (ulong k = 0; k < cols; k++)
                for (ulong c = 0; c < other.cols; c++)
                    product.cells[r * other.cols + c] += cells[r * cols + k] * other.cells[k * other.cols + c];
        return product;
    }
    matrix Cov(bool rows_are_variables) const
    {
        matrix centred = rows_are_variables ? *this : Transpose();
        for (ulong r = 0; r < centred.rows; r++) {
            double mean = 0;
            for (ulong c = 0; c < centred.cols; c++)
                mean += centred.cells[r * centred.cols + c] / static_cast<double>(centred.cols);
            for (ulong c = 0; c < centred.cols; c++)
                centred.cells[r * centred.cols + c] -= mean;
        }
        matrix moments = centred.MatMul(centred.Transpose());
        for (double &cell : moments.cells)
            cell /= static_cast<double>(centred.cols - 1);
        return moments;
    }
    matrix CorrCoef(bool rows_are_variables) const
    {
        matrix moments = Cov(rows_are_variables);
        matrix scaled = moments;
        ulong n = moments.rows;
        for (ulong r = 0; r < n; r++)
            for (ulong c = 0; c < n; c++)
                scaled.cells[r * n + c] /= std::sqrt(moments.cells[r * n + r]) * std::sqrt(moments.cells[c * n + c]);
        return scaled;
    }
};
